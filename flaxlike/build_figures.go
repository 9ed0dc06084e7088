package flaxlike

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/names"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

func (m *Model) report(b *managed.Builder) {
	out := m.outputs(b)
	if b.Training() {
		m.trains()
		if len(m.set.classWeights) > 0 && len(out) > 1 {
			panic(fmt.Errorf("WithClassWeights: the model has the outputs %s, and the weights do not name the output of their classes: expected a model with one "+
				"output\n  leave WithClassWeights out; weigh the classes of one output in the Func of its Loss, or the examples by WithSampleWeights",
				listed.Some(slices.Sorted(maps.Keys(out)))))
		}
	}
	var sample *graph.Node
	if m.set.weights != "" {
		sample = uncast(m.field(b, m.set.weights, "WithSampleWeights names"))
		if !sample.DType().IsFloat() {
			panic(fmt.Errorf("field %s, which WithSampleWeights names, has %s: expected float32 or float64, one weight for each example", listed.Quoted(m.set.weights), sample.DType()))
		}
		for sample.Rank() > 1 && outputs.Classes(sample) == 1 {
			sample = graph.Squeeze(sample, -1)
		}
		m.seen.take(bound{field: m.set.weights, kind: "weight", high: math.MaxFloat32, why: "sample weights are finite numbers from 0 on"})
	}
	var total, of, counts *graph.Node
	mean := func(name string, v *graph.Node) {
		if counts == nil {
			b.Mean(name, v)
			return
		}
		b.Track(name, metrics.Mean(), counts, b.ToOutputType(of))
	}
	single, weighed := len(m.set.losses) == 1, false
	for _, l := range m.set.losses {
		logged := l.logged(single)
		name := logged
		if l.Func != nil && l.Name != "" {
			name = l.Name
		}
		labels, output := m.judged(b, "loss", name, out, l.Output, l.Label)
		f := l.Func
		if f == nil {
			f = l.byName()
			field := labelOf(out, l.Output, l.Label)
			m.seen.take(labelsOf(l, field, output, m.set.weights))
			if r, ok := rowsOf(l, field, output, m.set.weights); ok {
				m.seen.take(r)
			}
		}
		places := nn.MaskOf(output)
		var v *graph.Node
		switch {
		case l.Func != nil || l.Name != maskedSparse && !l.kind().ofBatch:
			if v = f(labels, output); l.kind().masks {
				places = nil
			}
		case l.Name == maskedSparse:
			v = outputs.CrossEntropies(maskedSparse, "binary_crossentropy, and WithSampleWeights for the mask", labels, output)
			places = outputs.Both(l.counted(labels, output), places)
		default:
			v, places = ofWhole(l.Name, f, labels, output, outputs.Both(places, b.Mask())), nil
		}
		checkReturned("loss "+listed.Quoted(name), v)
		eachExample("loss "+listed.Quoted(name), v, labels)
		v = timesWeights(name, v, sample)
		if classes := m.set.classesOf(l, labels, output); classes != 0 && len(m.set.classWeights) > 0 {
			m.set.checkClassWeights(name, classes)
			weighed = true
			m.seen.noteWeighed(labelOf(out, l.Output, l.Label))
			if labels.DType().IsFloat() {
				m.seen.take(bound{field: labelOf(out, l.Output, l.Label), kind: "label", whole: true, high: 1, weights: m.set.weights,
					why: "WithClassWeights weighs classes, which are 0 and 1 here; weights of single examples: WithSampleWeights"})
			}
			if b.Training() {
				v = timesWeights(name, v, weightsOfClasses(labels, m.set.classWeights, v.DType()))
			}
		}
		each := v
		v = perExample(outputs.Counted(name, each, places, b.Mask()))
		if of, counts = nil, nil; places != nil {
			of, counts = outputs.ByExample(each, places)
		}
		if !single {
			b.Metric(logged, v)
			mean(averaged+logged, v)
		}
		if l.Off {
			continue
		}
		if l.Weight != 0 {
			v = graph.MulScalar(v, l.Weight)
			if of != nil {
				of = graph.MulScalar(of, l.Weight)
			}
		}
		if total == nil {
			total = v
		} else {
			total = graph.Add(total, graph.ConvertDType(v, total.DType()))
		}
	}
	if total != nil {
		if total.Rank() > 0 { // managed weights scalars by the batch's size
			if !single {
				counts = nil
			}
			mean(averaged+trained, total)
		}
		b.Loss(trained, total)
	}
	if len(m.set.classWeights) > 0 && len(m.set.losses) > 0 && !weighed {
		panic(m.set.noClasses())
	}
	for _, metric := range m.set.metrics {
		m.figure(b, metric, out, sample)
	}
}

func (m *Model) trains() {
	m.seen.mu.Lock()
	variables := m.seen.variables
	m.seen.mu.Unlock()
	if slices.ContainsFunc(variables, func(v variable) bool { return v.trainable }) {
		return
	}
	panic(errors.New("the network has no variable to train: give New a network with a layer that has variables, as nn.Dense; Evaluate and Predict need none"))
}

func (m *Model) judged(b *managed.Builder, kind, name string, out map[string]*graph.Node, output, label string) (labels, v *graph.Node) {
	if output = outputOf(out, output); output == "" && len(out) > 1 {
		panic(fmt.Errorf("%s %s: the model has the outputs %s: name one of them by Output", kind, listed.Quoted(name), listed.Some(slices.Sorted(maps.Keys(out)))))
	}
	v, err := names.Find(fmt.Sprintf("%s %s: output", kind, listed.Quoted(name)), output, out)
	if err != nil {
		panic(err)
	}
	return uncast(m.field(b, labelOf(out, output, label), fmt.Sprintf("%s %s takes as its labels", kind, listed.Quoted(name)))), v
}

func checkReturned(what string, v *graph.Node) {
	if v == nil {
		panic(fmt.Errorf("%s: its function returned nil: expected a value for each example, [batch, …], or a scalar", what))
	}
}

func eachExample(what string, v, labels *graph.Node) {
	if v == nil || v.Rank() == 0 || labels.Rank() == 0 || v.Shape().Dimensions[0] == labels.Shape().Dimensions[0] {
		return
	}
	rows := labels.Shape().Dimensions[0]
	panic(fmt.Errorf("%s returns %s for %d examples: expected a value for each, [%d, …], or a scalar: reduce other axes than the first, "+
		"which is the batch", what, v.Shape(), rows, rows))
}

func perExample(v *graph.Node) *graph.Node {
	if v.Rank() < 2 {
		return v
	}
	return graph.ReduceMean(graph.Reshape(v, v.Shape().Dimensions[0], -1), 1)
}

func ofWhole(name string, f losses.Func, labels, output, mask *graph.Node) *graph.Node {
	if mask != nil {
		labels = outputs.Same(name, labels, output)
		mask = graph.BroadcastToDims(outputs.Expanded(mask, output), output.Shape().Dimensions...)
		labels, output = graph.Where(mask, labels, graph.ZerosLike(labels)), graph.Where(mask, output, graph.ZerosLike(output))
	}
	return graph.BroadcastToDims(f(labels, output), output.Shape().Dimensions[0])
}

func timesWeights(name string, v, weights *graph.Node) *graph.Node {
	if weights == nil {
		return v
	}
	checkFit(name, v, weights)
	weights = outputs.Expanded(graph.ConvertDType(weights, v.DType()), v)
	return graph.Mul(v, graph.BroadcastToShape(weights, v.Shape()))
}

func checkFit(name string, v, weights *graph.Node) {
	w, s := weights.Shape(), v.Shape()
	fits := w.Rank() <= s.Rank()
	for i := 0; fits && i < w.Rank(); i++ {
		fits = w.Dimensions[i] == s.Dimensions[i]
	}
	if !fits || s.Rank() == 0 {
		panic(fmt.Errorf("%s: weights %s do not fit its value %s: expected a value for each example, [batch, …], and weights of its first axes", listed.Quoted(name), w, s))
	}
}

func (s *settings) classesOf(l Loss, labels, output *graph.Node) int {
	switch {
	case l.kind().binary && oneEach(output):
		return 2
	case !labels.DType().IsInt():
		return 0
	case l.kind().labels == classLabels:
		return outputs.Classes(output)
	}
	return -1
}

func (s *settings) noClasses() error {
	for _, l := range s.losses {
		switch {
		case l.kind().labels == exclusiveLabels && l.Name != "kl_divergence": // not of one class
			return fmt.Errorf("WithClassWeights: the labels of %s are one-hot rows, and class weights are for numbers of classes: "+
				"take sparse_categorical_crossentropy with the class numbers, as []int32, as labels", l.Name)
		case l.kind().binary:
			return fmt.Errorf("WithClassWeights: an example has several labels for %s, so there is no single class whose weight applies: "+
				"leave WithClassWeights out, and weigh the examples, or each of their labels, by WithSampleWeights", l.Name)
		}
	}
	return errors.New("WithClassWeights: no loss has labels that are class numbers, so no weight would have an effect: " +
		"expected integers, as []int32, or labels of binary_crossentropy; weights of single examples: WithSampleWeights")
}

func (s *settings) checkClassWeights(loss string, classes int) {
	for _, class := range slices.Sorted(maps.Keys(s.classWeights)) {
		if classes > 0 && class >= classes {
			panic(fmt.Errorf("WithClassWeights: there is no class %d: the output of the loss %s has the classes 0…%d", class, listed.Quoted(loss), classes-1))
		}
	}
	for class := range classes {
		if w, named := s.classWeights[class]; !named || w != 0 {
			return
		}
	}
	if classes > 0 {
		panic(fmt.Errorf("WithClassWeights: all %d classes of the loss %s weigh 0, so no example would count: expected a weight above 0 for one at least", classes, listed.Quoted(loss)))
	}
}

func weightsOfClasses(labels *graph.Node, weights map[int]float64, dtype dtypes.DType) *graph.Node {
	if s := labels.Shape(); s.Rank() > 1 && s.Dimensions[s.Rank()-1] == 1 {
		labels = graph.Squeeze(labels, -1)
	}
	w := graph.Ones(labels.Graph(), labels.Shape())
	w = graph.ConvertDType(w, dtype)
	for _, class := range slices.Sorted(maps.Keys(weights)) {
		is := graph.Equal(labels, graph.Scalar(labels.Graph(), labels.DType(), class))
		w = graph.Where(is, graph.MulScalar(graph.OnesLike(w), weights[class]), w)
	}
	return w
}

func (m *Model) figure(b *managed.Builder, metric Metric, out map[string]*graph.Node, sample *graph.Node) {
	labels, output := m.judged(b, "metric", metric.Name, out, metric.Output, metric.Label)
	sample = m.weightsOf(b, metric, out, labels, output, sample)
	places := nn.MaskOf(output)
	if l, ok := m.set.masked(metric, out); metric.Func == nil && ok && labels.DType().IsInt() && labels.Rank() > 0 {
		places = outputs.Both(l.counted(labels, output), places)
	}
	if places != nil {
		sample = timesWeights(metric.Name, graph.ConvertDType(places, dtypes.Float32), sample)
	}
	field, own := labelOf(out, metric.Output, metric.Label), outputOf(out, metric.Output)
	m.seen.mu.Lock()
	trained := m.seen.labels[own]
	m.seen.mu.Unlock()
	network := output
	labels, output = restored(labels, m.set.preparation.Targets(field), field), restored(output, m.set.preparation.Targets(trained), trained)
	if metric.Func != nil {
		v := metric.Func(labels, output)
		checkReturned("metric "+listed.Quoted(metric.Name), v)
		eachExample("metric "+listed.Quoted(metric.Name), v, labels)
		if !v.DType().IsFloat() {
			v = graph.ConvertDType(v, dtypes.Float32)
		}
		if sample == nil {
			b.Mean(metric.logged(), b.ToOutputType(perExample(v)))
			return
		}
		checkFit(metric.Name, v, sample)
		b.Track(metric.logged(), metrics.Mean(), sample, b.ToOutputType(v))
		return
	}
	of := metric.Metric
	if of == nil {
		of = m.byName(metric, out, labels, network)
	}
	if labels.DType().IsInt() && labels.Rank() > 1 && labels.Rank() == output.Rank() && labels.Shape().Dimensions[labels.Rank()-1] == 1 && outputs.Classes(output) > 1 {
		labels = graph.Squeeze(labels, -1)
	}
	if metric.Metric != nil && labels.Rank() == 1 && output.Rank() == 2 && outputs.Classes(output) == 1 {
		output = graph.Squeeze(output, -1)
	}
	b.Track(metric.logged(), of, sample, labels, output)
}

func (m *Model) weightsOf(b *managed.Builder, metric Metric, out map[string]*graph.Node, labels, output, sample *graph.Node) *graph.Node {
	if !metric.Weighted {
		return nil
	}
	classed := len(m.set.classWeights) > 0 && m.set.besides(metric, out, func(l Loss) bool { return m.set.classesOf(l, labels, output) != 0 })
	if sample == nil && !classed {
		panic(fmt.Errorf("metric %s is Weighted, but its examples have no weights: give New WithSampleWeights, or WithClassWeights and a loss of these "+
			"labels, or leave Weighted out", listed.Quoted(metric.Name)))
	}
	if classed && b.Training() {
		return timesWeights(metric.Name, weightsOfClasses(labels, m.set.classWeights, dtypes.Float32), sample)
	}
	return sample
}

func (s *settings) besides(metric Metric, out map[string]*graph.Node, such func(Loss) bool) bool {
	return slices.ContainsFunc(s.losses, func(l Loss) bool {
		return outputOf(out, l.Output) == outputOf(out, metric.Output) && labelOf(out, l.Output, l.Label) == labelOf(out, metric.Output, metric.Label) && such(l)
	})
}

func (s *settings) masked(metric Metric, out map[string]*graph.Node) (loss Loss, ok bool) {
	ok = s.besides(metric, out, func(l Loss) bool {
		loss = l
		return l.Func == nil && l.Name == maskedSparse
	})
	return loss, ok
}

func (m *Model) byName(metric Metric, out map[string]*graph.Node, labels, output *graph.Node) metrics.Metric {
	weights := ""
	if metric.Weighted {
		weights = m.set.weights
	}
	field := labelOf(out, metric.Output, metric.Label)
	instead, compares := ofClasses[metric.Name]
	if !compares {
		if l := (Loss{Name: metric.Name}); l.check() == nil {
			if r := labelsOf(l, field, output, weights); (r.classes() || r.low >= 0) && m.set.preparation.Targets(field) == nil {
				m.seen.take(r)
			}
			if r, ok := rowsOf(l, field, output, weights); ok {
				m.seen.take(r)
			}
		}
		return metricsByName[metric.Name](output, scale{})
	}
	are := m.set.scaleOf(metric, out, output)
	if instead != "" {
		outputs.SeveralClasses("metric "+listed.Quoted(metric.Name), output, instead)
	}
	if made := outputs.MadeBy(output); made != "" && instead == "binary_crossentropy" {
		panic(fmt.Errorf("metric %s: the output went through a %s, expected logits: the metric has a softmax in it", listed.Quoted(metric.Name), made))
	}
	r := m.classLabels(metric.Name, field, labels, output)
	m.set.besides(metric, out, func(l Loss) bool {
		of := labelsOf(l, field, output, "")
		if l.Func != nil || !of.classes() || ranks[metric.Name] && !of.signs {
			return false
		}
		r = of
		return true
	})
	r.weights = weights
	m.seen.take(r)
	several := labels.Shape().EqualDimensions(output.Shape()) && !oneEach(output) && (outputs.MadeBy(output) == "sigmoid" ||
		m.set.besides(metric, out, func(l Loss) bool { return l.kind().binary }))
	if scores := scoresByName[metric.Name]; several && scores != nil {
		return are.binary(metrics.MultiLabel(scores(outputs.Classes(output), metrics.Macro)))
	}
	if of, ok := m.oneClass(metric, field, labels, output, r); ok {
		m.seen.take(of)
	}
	return metricsByName[metric.Name](output, are)
}

func (s *settings) scaleOf(metric Metric, out map[string]*graph.Node, output *graph.Node) scale {
	if outputs.MadeBy(output) != "" {
		return scale{metric.Name, areProbabilities}
	}
	are := areUntold
	for _, l := range s.losses {
		if outputOf(out, l.Output) == outputOf(out, metric.Output) {
			are = min(are, numbersOf(l, output))
		}
	}
	return scale{metric.Name, are}
}

func (m *Model) classLabels(name, field string, labels, output *graph.Node) bound {
	r := bound{field: field, kind: "label"}
	switch two := oneEach(output) || name == "binary_accuracy"; {
	case ranks[name]:
		r.whole, r.high, r.why = true, 1, fmt.Sprintf("the metric %s ranks examples of the classes 0 and 1, and a label between them is neither (Keras counts it as 1): "+
			"smooth labels by Smoothing of the Loss, or leave the metric out", listed.Quoted(name))
	case two:
		r.whole, r.high, r.why = true, 1, fmt.Sprintf("the metric %s compares classes, 0 and 1 here; for numbers use mae, rmse or r2", listed.Quoted(name))
	case labels.DType().IsInt():
		r.class, r.high = true, float64(outputs.Classes(output)-1)
		r.why, r.hint = fmt.Sprintf("the output has %d, and the metric %s compares them", outputs.Classes(output), listed.Quoted(name)), "make the last layer wider, or number the classes from 0"
	default:
		r.low, r.high, r.why = -rounding, 1+rounding, fmt.Sprintf("the metric %s compares classes, and takes labels of this shape as their probabilities", listed.Quoted(name))
	}
	return r
}

func (m *Model) oneClass(metric Metric, field string, labels, output *graph.Node, r bound) (bound, bool) {
	if labels.DType().IsInt() || oneEach(output) || r.signs || !labels.Shape().EqualDimensions(output.Shape()) || notLikeliest[metric.Name] {
		return bound{}, false
	}
	return bound{field: field, kind: "sum of labels", weights: r.weights, row: outputs.Classes(output), why: fmt.Sprintf(
		"the metric %s takes the likeliest class, so the labels of an example have the sum 1 (or 0, which is class 0, as in Keras); for several labels use binary_accuracy", listed.Quoted(metric.Name))}, true
}
