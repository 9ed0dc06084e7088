package hlo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/types/shardy"
)

// StepCount is the last input's name in [Module.Steps]: the number of steps, an int32 scalar.
const StepCount = "#steps"

// Steps returns a module that runs this one, a step, up to k times (1 to 2^30). Outputs in place are the state, which
// passes from step to step. batch lists parameters with one value per step, stacked on a new first axis of length k;
// others are constant. The last input, [StepCount], is clamped to 0 … k.
//
// Other outputs are stacked on a new first axis, with zeros for steps that did not run. Results are bit-identical for
// any division into runs.
func (m *Module) Steps(k int, batch ...int) (*Module, error) {
	looped, err := m.repeat(k, m.InPlace, batch, true)
	if err != nil {
		return nil, fmt.Errorf("hlo: steps of %q: %w", m.Name, err)
	}
	return looped, nil
}

// Scan returns a module that runs this one length times. carry maps outputs to the next run's parameters, of the same
// shape; the module returns the last ones. each lists parameters with one value per run, stacked on a new first axis;
// others are constant. Other outputs are stacked. Outputs stay in place if carry maps them to the same parameter.
func (m *Module) Scan(length int, carry map[int]int, each ...int) (*Module, error) {
	looped, err := m.repeat(length, carry, each, false)
	if err != nil {
		return nil, fmt.Errorf("hlo: scan of %q: %w", m.Name, err)
	}
	return looped, nil
}

func (m *Module) checkRepeat(k int, carry map[int]int, each []int) error {
	if k < 1 || k > 1<<30 {
		return fmt.Errorf("length %d, expected from 1 to %d", k, 1<<30)
	}
	if err := checkAxes("the stacked parameters", each, len(m.Parameters)); err != nil {
		return err
	}
	fed := map[int]bool{}
	for _, output := range slices.Sorted(maps.Keys(carry)) {
		parameter := carry[output]
		switch {
		case output < 0 || output >= len(m.Outputs) || parameter < 0 || parameter >= len(m.Parameters):
			return fmt.Errorf("output %d becomes parameter %d, but there are %d outputs and %d parameters", output, parameter, len(m.Outputs), len(m.Parameters))
		case !m.Outputs[output].Shape.Equal(m.Parameters[parameter].Shape):
			return fmt.Errorf("output %d, %s, becomes parameter %d, %s; expected the same shape", output, m.Outputs[output].Shape, parameter, m.Parameters[parameter].Shape)
		case fed[parameter]:
			return fmt.Errorf("two outputs become parameter %d", parameter)
		case slices.Contains(each, parameter):
			return fmt.Errorf("parameter %d is both stacked and an earlier output", parameter)
		}
		fed[parameter] = true
	}
	if len(carry) == 0 && len(each) == 0 {
		return errors.New("nothing is in place or carried, and no parameter is stacked: each run would be the same")
	}
	return nil
}

// The loop carries the counter, the number of runs, all parameters, and the stacked outputs.
func (m *Module) repeat(k int, carry map[int]int, each []int, counted bool) (*Module, error) {
	if err := m.checkRepeat(k, carry, each); err != nil {
		return nil, err
	}
	for _, p := range m.Parameters {
		if counted && p.Name == StepCount {
			return nil, fmt.Errorf("the module is one of steps already: it has the parameter %q", StepCount)
		}
	}
	step := fmt.Sprintf("step%d", len(m.functions))
	looped := m.clone()
	looped.functions = append(looped.functions, m.function("private", step))
	for output := range looped.InPlace {
		if parameter, ok := carry[output]; !ok || parameter != looped.InPlace[output] {
			delete(looped.InPlace, output)
		}
	}
	w := &loopText{}
	w.line("    %%zero = stablehlo.constant dense<0> : tensor<i32>")
	w.line("    %%length = stablehlo.constant dense<%d> : tensor<i32>", k)
	times := "%length"
	if counted {
		times = "%times"
		w.line("    %%times = stablehlo.minimum %%%s, %%length : tensor<i32>", parameterName(len(m.Parameters)))
		looped.Parameters = append(looped.Parameters, Parameter{Name: StepCount, Shape: shapes.Make(dtypes.Int32)})
	}
	initial := []string{"%zero", times}
	w.types = []string{"tensor<i32>", "tensor<i32>"}
	for i, p := range m.Parameters {
		if slices.Contains(each, i) {
			p = Parameter{Name: p.Name, Shape: stacked(p.Shape, k), split: stackedSplit(p.split)}
			looped.Parameters[i] = p
		}
		initial, w.types = append(initial, "%"+parameterName(i)), append(w.types, typeText(p.Shape))
	}
	place := make([]int, len(m.Outputs))
	for i, o := range m.Outputs {
		if parameter, ok := carry[i]; ok {
			place[i] = 2 + parameter
			continue
		}
		place[i] = len(initial)
		o = Output{stacked(o.Shape, k), stackedSplit(o.split)}
		looped.Outputs[i] = o
		w.line("    %%empty%d = stablehlo.constant dense<%s> : %s", i, zeroText(o.Shape.DType), typeText(o.Shape))
		initial, w.types = append(initial, fmt.Sprintf("%%empty%d", i)), append(w.types, typeText(o.Shape))
	}

	all := strings.Join(w.types, ", ")
	w.line("    %%r:%d = \"stablehlo.while\"(%s) ({", len(initial), strings.Join(initial, ", "))
	w.line("    ^bb0(%s):", w.arguments("c"))
	w.line("      %%more = stablehlo.compare LT, %%c0, %%c1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>")
	w.line("      stablehlo.return %%more : tensor<i1>")
	w.line("    }, {")
	w.line("    ^bb0(%s):", w.arguments("b"))
	w.body(m, step, each, place)
	w.line("    }) : (%s) -> (%s)", all, all)
	results, types := make([]string, len(place)), make([]string, len(place))
	for i, p := range place {
		results[i], types[i] = fmt.Sprintf("%%r#%d", p), w.types[p]
	}
	w.line("    return %s : %s", strings.Join(results, ", "), strings.Join(types, ", "))
	looped.body = w.text.String()
	return looped, nil
}

type loopText struct {
	text  strings.Builder
	types []string
}

func (w *loopText) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *loopText) arguments(prefix string) string {
	list := make([]string, len(w.types))
	for i, t := range w.types {
		list[i] = fmt.Sprintf("%%%s%d: %s", prefix, i, t)
	}
	return strings.Join(list, ", ")
}

func (w *loopText) body(m *Module, step string, each, place []int) {
	w.line("      %%one = stablehlo.constant dense<1> : tensor<i32>")
	w.line("      %%start = stablehlo.constant dense<0> : tensor<i32>")
	next := make([]string, len(w.types))
	for i := range next {
		next[i] = fmt.Sprintf("%%b%d", i)
	}
	arguments, argumentTypes := make([]string, len(m.Parameters)), make([]string, len(m.Parameters))
	for i, p := range m.Parameters {
		arguments[i], argumentTypes[i] = next[2+i], typeText(p.Shape)
		if !slices.Contains(each, i) {
			continue
		}
		one := stacked(p.Shape, 1)
		at, atTypes := indexText(one)
		w.line("      %%cut%d = \"stablehlo.dynamic_slice\"(%%b%d, %s) {slice_sizes = %s} : (%s, %s) -> %s", i, 2+i, at, integers(one.Dimensions), w.types[2+i], atTypes, typeText(one))
		w.line("      %%in%d = stablehlo.reshape %%cut%d : (%s) -> %s", i, i, typeText(one), typeText(p.Shape))
		arguments[i] = fmt.Sprintf("%%in%d", i)
	}
	outputTypes := make([]string, len(m.Outputs))
	for i, o := range m.Outputs {
		outputTypes[i] = typeText(o.Shape)
	}
	w.line("      %%o:%d = func.call @%s(%s) : (%s) -> (%s)", len(m.Outputs), step, strings.Join(arguments, ", "), strings.Join(argumentTypes, ", "), strings.Join(outputTypes, ", "))
	for i, o := range m.Outputs {
		if place[i] < 2+len(m.Parameters) {
			next[place[i]] = fmt.Sprintf("%%o#%d", i)
			continue
		}
		one := stacked(o.Shape, 1)
		at, atTypes := indexText(one)
		w.line("      %%row%d = stablehlo.reshape %%o#%d : (%s) -> %s", i, i, typeText(o.Shape), typeText(one))
		w.line("      %%out%d = \"stablehlo.dynamic_update_slice\"(%%b%d, %%row%d, %s) : (%s, %s, %s) -> %s", i, place[i], i, at, w.types[place[i]], typeText(one), atTypes, w.types[place[i]])
		next[place[i]] = fmt.Sprintf("%%out%d", i)
	}
	w.line("      %%count = stablehlo.add %%b0, %%one : tensor<i32>")
	next[0] = "%count"
	w.line("      stablehlo.return %s : %s", strings.Join(next, ", "), strings.Join(w.types, ", "))
}

func indexText(s shapes.Shape) (names, types string) {
	rest := s.Rank() - 1
	return "%b0" + strings.Repeat(", %start", rest), "tensor<i32>" + strings.Repeat(", tensor<i32>", rest)
}

func stacked(s shapes.Shape, k int) shapes.Shape {
	return shapes.Shape{DType: s.DType, Dimensions: append([]int{k}, s.Dimensions...)}
}

func stackedSplit(split *shardy.ShardingSpec) *shardy.ShardingSpec {
	if split == nil {
		return nil
	}
	return &shardy.ShardingSpec{Mesh: split.Mesh, Axes: append([]shardy.TensorAxisSpec{{}}, split.Axes...)}
}

func zeroText(t dtypes.DType) string {
	switch classes[t] {
	case boolean:
		return "false"
	case float:
		return "0.0"
	case complexes:
		return "(0.0, 0.0)"
	}
	return "0"
}
