package flaxlike

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

func (m *Model) outputs(b *managed.Builder) map[string]*graph.Node {
	scope := b.Scope().In(modelScope)
	var inputs []described
	layers := trace{inputs: map[*graph.Node]string{}, take: m.seen.take, settings: map[string]string{}}
	layering.SetTrace(b.Graph(), &layers)
	taken := func() bool { return true }
	if m.set.initializer != nil {
		taken = nn.Kernels(scope, b.Graph(), m.set.initializer)
	}
	out := outputsOf(m.network, scope, func(name string) *graph.Node {
		field := m.field(b, name, "the network takes as an input")
		layers.inputs[field] = name
		if given := uncast(field).Shape(); !slices.ContainsFunc(inputs, func(d described) bool { return d.Name == name }) {
			inputs = append(inputs, described{name, given.DType, slices.Clone(given.Dimensions)})
		}
		return field
	})
	checkAxes(inputs, out)
	layers.numbersAlone(b.Graph())
	if !taken() {
		panic(errors.New("WithInitializer: no kernel uses it: expected a layer with a kernel, as Dense, whose own Kernel is not set; " +
			"for weights of other layers, set the layer's own initializer"))
	}
	rows, arrows := layers.rowsOf(m.network, out)
	of, widths, fields := map[string]odds{}, map[string]int{}, map[string]string{}
	for name, v := range out {
		if widths[name] = 1; v.Rank() > 1 {
			widths[name] = outputs.Classes(v)
		}
		of[name] = m.set.oddsOf(out, name)
		fields[name] = labelOf(out, name, "")
	}
	for _, l := range m.set.losses {
		fields[outputOf(out, l.Output)] = labelOf(out, l.Output, l.Label)
	}
	for name := range out {
		if m.set.preparation.Targets(fields[name]) != nil { // numbers, whatever the network ends with
			of[name] = noOdds
		}
	}
	m.checkClasses(out, fields)
	for name, v := range out {
		if v.DType().IsFloat() {
			out[name] = b.ToOutputType(v)
			layering.HandOn(v, out[name])
		}
	}
	var variables []variable
	for v := range scope.IterVariables() {
		variables = append(variables, variable{v.Path(), v.Shape(), v.Trainable})
	}
	m.seen.mu.Lock()
	m.seen.layers, m.seen.arrows, m.seen.variables, m.seen.inputs, m.seen.odds, m.seen.widths, m.seen.labels = rows, arrows, variables, inputs, of, widths, fields
	if b.Training() {
		m.seen.settings = layers.settings
	}
	if b.Training() || m.seen.described == nil { // a prediction for shorter sequences keeps the file
		m.seen.described = inputs
	}
	m.seen.mu.Unlock()
	return out
}

// checkAxes refuses an input [n] whose batch axis became features.
func checkAxes(inputs []described, out map[string]*graph.Node) {
	if len(inputs) != 1 || len(inputs[0].Dims) != 1 || !inputs[0].Type.IsFloat() {
		return
	}
	x, n := inputs[0], inputs[0].Dims[0]
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if v := out[name]; v != nil && v.Rank() > 0 && v.Shape().Dimensions[0] != n {
			panic(fmt.Errorf("field %[1]s has shape [%[2]d], one number for each example, and the network computes the output %[3]s from it: expected an output for each example\n"+
				"  give %[1]s the shape [examples, 1], as by data.X(values, examples, 1): layers take the last axis as the axis of the features", listed.Quoted(x.Name), n, v.Shape()))
		}
	}
}

func (m *Model) checkClasses(out map[string]*graph.Node, fields map[string]string) {
	s, names := &m.set, m.classNames()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		output, ok := out[outputOf(out, name)]
		if !ok {
			panic(fmt.Errorf("WithClasses %s: the model has the outputs %s", listed.Quoted(name), listed.Some(slices.Sorted(maps.Keys(out)))))
		}
		n := len(names[name])
		if has := outputs.Classes(output); n != has && !(oneEach(output) && n == 2) {
			named, hint := cmp.Or(s.named, "WithClasses names"), s.namedHint
			if s.classes == nil {
				named, hint = fmt.Sprintf("field %q of the set to train on has", fields[outputOf(out, name)]),
					fmt.Sprintf("\n  end the network with nn.Dense{Units: %d}, or give New WithClasses with the names of all classes", n)
			}
			if s.named == ofPreparation {
				hint = fmt.Sprintf("\n  for labels that are classes end the network with nn.Dense{Units: %d}; for labels that are numbers fit the preparation "+
					"with tables.Labels{Numbers: true}", n)
			}
			panic(fmt.Errorf("%s %d classes, and the output %s has %d%s", named, n, output.Shape(), has, hint))
		}
		if err := s.checkOrder(names[name], fields[outputOf(out, name)]); err != nil {
			panic(err)
		}
	}
}

func (s *settings) oddsOf(out map[string]*graph.Node, name string) odds {
	switch outputs.MadeBy(out[name]) {
	case "softmax":
		return softmaxed
	case "sigmoid":
		return sigmoided
	}
	of := oddsUnknown
	for _, l := range s.losses {
		if outputOf(out, l.Output) != name {
			continue
		}
		by := oddsOfLoss(l, out[name])
		switch {
		case by == oddsUnknown || by == of:
		case of == oddsUnknown || of == noOdds:
			of = by
		case by != noOdds:
			return oddsUnknown
		}
	}
	return of
}

func (m *Model) field(b *managed.Builder, name, what string) *graph.Node {
	if names := b.Fields(); !slices.Contains(names, name) {
		todo := "use this name where the set is made (data.X, data.Y, data.Named)"
		if m.set.preparation != nil {
			todo = fmt.Sprintf("the preparation makes the fields: fit it with tables.Labels for labels, whose Field is %q, or with another rule of this Field", name)
		}
		panic(fmt.Errorf("the batch has no field %s, which %s; it has: %s\n  %s", listed.Quoted(name), what, cmp.Or(listed.Joined(names), "none"), todo))
	}
	return b.Field(name)
}

func uncast(field *graph.Node) *graph.Node {
	if field.Type() == graph.NodeTypeConvertDType {
		return field.Inputs()[0]
	}
	return field
}

func outputOf(out map[string]*graph.Node, name string) string {
	if name == "" && len(out) == 1 {
		for only := range out {
			return only
		}
	}
	return name
}

func labelOf(out map[string]*graph.Node, output, label string) string {
	switch {
	case label != "":
		return label
	case len(out) == 1:
		return "y"
	}
	return output
}
