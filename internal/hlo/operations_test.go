package hlo_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// smooth operations may take rounded inputs: a small change of the input makes a small change of the output.
var smooth = []string{"Add", "Sub", "Mul", "Neg", "Abs", "Sin", "Cos", "Tanh", "Logistic", "Erf", "ReduceSum", "DotGeneral", "Reshape", "Transpose", "Reverse", "Concatenate", "Where", "Pad"}

// drawSample draws an operation by its name.
func drawSample(r *source, name string) (sample, bool) {
	switch {
	case unaryTypes[name] != nil:
		return unarySample(r, name), true
	case binaryTypes[name] != nil:
		return binarySample(r, name), true
	case reduceTypes[name] != nil:
		return reduceSample(r, name), true
	case moveSamples[name] != nil:
		return moveSamples[name](r), true
	case mathSamples[name] != nil:
		return mathSamples[name](r), true
	case normSamples[name] != nil:
		return normSamples[name](r), true
	case flowSamples[name] != nil:
		return flowSamples[name](r), true
	}
	return sample{}, false
}

// operations lists the methods of GoMLX's interface that add something to a program.
func operations() (names []string) {
	none := programOf(hlo.New("none", nil)).Function
	for of, i := reflect.TypeFor[compute.Function](), 0; i < of.NumMethod(); i++ {
		switch name := of.Method(i).Name; {
		case slices.Contains([]string{"Name", "Builder", "Parent", "Closure", "Shape", "Parameter", "Return"}, name):
		case !compute.IsNotImplemented(callWith(none, name, nil)):
			names = append(names, name)
		}
	}
	return names
}

type known struct {
	op    compute.Value
	want  array
	exact bool
	from  string
}

// drawn is a random program. known has its expected outputs after the build.
type drawn struct {
	name   string
	inputs []array
	build  builds
	known  func() []known
}

// drawProgram writes a program of a few operations, on parameters, constants and outputs of earlier operations.
func drawProgram(t *testing.T, r *source, number int, names []string, covered map[string]map[string]int) drawn {
	var inputs []array
	var steps []func(f compute.Function, parameters []compute.Value, pool []known) ([]known, error)
	var values []known // outputs of the steps so far
	for _, name := range names {
		s, ok := drawSample(r, name)
		require.True(t, ok, "no sample of %s", name)
		from := make([]func(f compute.Function, parameters []compute.Value, pool []known) (compute.Value, error), len(s.in))
		for i, x := range s.in {
			fits := -1
			for j, v := range values {
				if v.want.shape.Equal(x.shape) && (v.exact && safe(s, i) || slices.Contains(smooth, s.name) && tame(v.want)) {
					fits = j
				}
			}
			switch {
			case fits >= 0 && r.IntN(3) > 0:
				s.in[i] = values[fits].want
				s.exact = s.exact && values[fits].exact
				from[i] = func(_ compute.Function, _ []compute.Value, pool []known) (compute.Value, error) {
					return pool[fits].op, nil
				}
				covered["(chained)"]["operands"]++
			case r.IntN(3) == 0 && !x.shape.DType.IsPacked(): // Go has no values of these
				from[i] = func(f compute.Function, _ []compute.Value, _ []known) (compute.Value, error) {
					return f.Constant(x.flat, x.shape.Dimensions...)
				}
			default:
				inputs = append(inputs, x)
				n := len(inputs) - 1
				from[i] = func(_ compute.Function, parameters []compute.Value, _ []known) (compute.Value, error) {
					return parameters[n], nil
				}
			}
		}
		want, by, err := refer(s.in, s.build, s.direct)
		require.NoError(t, err, "the reference (%s) of %s(%v)", by, s.name, s.in)
		if r.IntN(3) == 0 && s.name != "AllReduce" {
			s.build = nested(r, s.build, s.in, want)
			covered["(nested)"][s.name]++
		}
		key := "-"
		if len(s.in) > 0 {
			key = s.in[0].shape.DType.String()
		}
		if covered[s.name] == nil {
			covered[s.name] = map[string]int{}
		}
		covered[s.name][key]++
		covered["(by)"][by]++
		steps = append(steps, func(f compute.Function, parameters []compute.Value, pool []known) ([]known, error) {
			operands := make([]compute.Value, len(from))
			for i := range from {
				var err error
				if operands[i], err = from[i](f, parameters, pool); err != nil {
					return nil, err
				}
			}
			ops, err := s.build(f, operands)
			if err != nil {
				return nil, err
			}
			var made []known
			for i, op := range ops {
				made = append(made, known{op, want[i], s.exact, fmt.Sprintf("%s(%v)", s.name, s.in)})
			}
			return made, nil
		})
		for i := range want {
			values = append(values, known{nil, want[i], s.exact, s.name})
			if s.exact || tame(want[i]) {
				r.pool = append(r.pool, want[i].shape)
			}
		}
	}
	var made []known
	build := func(f compute.Function, parameters []compute.Value) ([]compute.Value, error) {
		made = nil
		for _, step := range steps {
			more, err := step(f, parameters, made)
			if err != nil {
				return nil, err
			}
			made = append(made, more...)
		}
		ops := make([]compute.Value, len(made))
		for i, k := range made {
			ops[i] = k.op
		}
		return ops, nil
	}
	return drawn{fmt.Sprintf("program %d of %v", number, names), inputs, build, func() []known { return made }}
}

// runTogether runs random programs as one, which compiles faster. The error names the first program with a wrong
// output.
func runTogether(d *device, group []drawn) error {
	var inputs []array
	for _, p := range group {
		inputs = append(inputs, p.inputs...)
	}
	got, err := run(d, inputs, func(f compute.Function, parameters []compute.Value) (all []compute.Value, err error) {
		for _, p := range group {
			ops, err := p.build(f, parameters[:len(p.inputs)])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			all, parameters = append(all, ops...), parameters[len(p.inputs):]
		}
		return all, nil
	})
	if err != nil {
		return fmt.Errorf("%d programs from %s: %w", len(group), group[0].name, err)
	}
	for _, p := range group {
		for j, k := range p.known() {
			if diff := differ(got[j], k.want); diff != "" {
				return fmt.Errorf("%s: output %d, of %s: %s\n%s", p.name, j, k.from, diff, d.last.Text())
			}
		}
		got = got[len(p.known()):]
	}
	return nil
}

// safe reports whether any value of its shape may replace an operand.
func safe(s sample, i int) bool {
	switch s.name {
	case "Gather", "ScatterSum", "ScatterMax", "ScatterMin":
		return i != 1
	case "Div", "Rem", "Pow", "ShiftLeft", "ShiftRightLogical", "ShiftRightArithmetic":
		return i == 0 && s.name != "Pow"
	case "While":
		return i > 0
	case "Log", "Log1p", "Sqrt", "Rsqrt", "SelectAndScatterMax", "SelectAndScatterMin", "BatchNormForInference", "BatchNormGradient",
		"ConvertDType", "FFT", "Exp", "Expm1", "ReduceProduct", "DynamicSlice", "DynamicUpdateSlice", "ArgMinMax":
		return false
	case "Bitcast":
		return !s.in[0].shape.DType.IsFloat() // a NaN's bits may differ
	}
	return tame(s.in[i])
}

// tame reports whether an array has no NaN, no infinity and no number that could overflow.
func tame(a array) bool {
	for i := range a.shape.Size() {
		if v := a.number(i); !(real(v) < 1e3 && real(v) > -1e3 && imag(v) < 1e3 && imag(v) > -1e3) {
			return false
		}
	}
	return true
}

// Random programs of all operations and dtypes match GoMLX's pure-Go backend or a direct computation.
func TestOperations(t *testing.T) {
	d := open(t)
	all := slices.DeleteFunc(operations(), func(name string) bool { return name == "RNGBitGenerator" })
	covered := map[string]map[string]int{"(by)": {}, "(chained)": {}, "(nested)": {}}
	var group []drawn
	for i := range programs {
		r := &source{Rand: rand.New(rand.NewPCG(7, uint64(i)))}
		names := []string{all[i%len(all)]} // each operation in turn
		for range r.IntN(4) {
			names = append(names, pick(r, all))
		}
		if r.IntN(2) == 0 {
			names = append(names, pick(r, smooth))
		}
		group = append(group, drawProgram(t, r, i, names, covered))
		if len(group) < 10 && i+1 < programs {
			continue
		}
		if wrong := runTogether(d, group); wrong != nil {
			alone := false
			for _, p := range group {
				if err := runTogether(d, []drawn{p}); err != nil {
					t.Error(err)
					alone = true
				}
			}
			if !alone {
				t.Errorf("right when alone: %v", wrong)
			}
		}
		group = nil
	}
	types, pairs := map[string]bool{}, 0
	for _, name := range all {
		require.NotEmpty(t, covered[name], "%s of GoMLX's interface is in no program", name)
		pairs += len(covered[name])
		for kind := range covered[name] {
			types[kind] = true
		}
	}
	for _, kind := range allTypes {
		require.True(t, types[kind.String()], "no program has elements of type %s", kind)
	}
	inside := 0
	for _, n := range covered["(nested)"] {
		inside += n
	}
	t.Logf("%d programs: %d operations, %d types, %d pairs of operation and type of its first operand; references %v, %d operands were outputs of others; %d operations, of %d kinds, in branches, loops and functions",
		programs, len(all), len(types)-1, pairs, covered["(by)"], covered["(chained)"]["operands"], inside, len(covered["(nested)"]))
}
