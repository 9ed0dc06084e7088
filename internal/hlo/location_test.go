package hlo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// A plugin's message about the text leads to the operation and to the test's line, also in a module of steps.
func TestLocate(t *testing.T) {
	o := newOperands(t)
	sum := must1(t)(o.ReduceSum(o.f, 1)) // several lines of text, because a reduction has its own function
	wave := must1(t)(o.Sin(must1(t)(o.Add(sum, sum))))
	require.NoError(t, o.InPlace(0, 1))
	module := moduleFrom(t, o.program, []compute.Value{must1(t)(o.Neg(o.g)), wave, must1(t)(o.Add(o.vector, o.vector))})
	steps, err := module.Steps(4)
	require.NoError(t, err)
	for name, m := range map[string]*hlo.Module{"plain": module, "steps": steps} {
		for _, row := range []struct{ name, find, words, want string }{
			{"first line of several", `"stablehlo.reduce"(`, "-:LINE:10: error: bad", "ReduceSum((Float32)[2, 3])"},
			{"inside of it", "stablehlo.return", "-:LINE:10: error: bad", "ReduceSum((Float32)[2, 3])"},
			{"its last", "    }) ", "-:LINE:10: error: bad\n-:1:1: note: see", "ReduceSum((Float32)[2, 3])"},
			{"one line", `"stablehlo.sine"(`, "first\n-:LINE:3: error: bad", "Sin((Float32)[2])"},
			{"by its name", "module", "UNIMPLEMENTED: HLO opcode `negate` is not supported", "Neg((Float32)[3, 2])"},
			{"a name that two have", "module", "UNIMPLEMENTED: HLO opcode `add` is not supported", ""},
			{"no such name", "module", "HLO opcode `fft` is not supported", ""},
			{"not in the operations", "module", "-:LINE:1: error: bad", ""},
			{"behind the end", "module", "-:9999:1: error: bad", ""},
			{"no number", "module", "-:99999999999999999999999:1: error: bad", ""},
			{"nothing", "module", "bad", ""},
		} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				// The last one: in a module of steps the loop comes before the step.
				at := strings.LastIndex(m.Text(), row.find)
				require.Positive(t, at+1)
				words := strings.ReplaceAll(row.words, "LINE", fmt.Sprint(strings.Count(m.Text()[:at], "\n")+1))
				op, ok := m.Locate(words)
				require.Equal(t, row.want != "", ok)
				if ok {
					require.Equal(t, row.want, op.String())
					require.Regexp(t, `^hlo/location_test\.go:\d+$`, op.Where)
				}
			})
		}
	}
	_, ok := (&hlo.Module{}).Locate("-:3:1: error: bad")
	require.False(t, ok)
	require.Empty(t, (&hlo.Module{}).Largest(3))
}

// The same in closures and functions. Text of no operation is not located.
func TestLocate_inside(t *testing.T) {
	o := newOperands(t)
	do := must1(t)
	double, err := o.NewFunction("double")
	require.NoError(t, err)
	x := do(double.Parameter("x", shapes.Make(dtypes.Float32, 2, 3), nil))
	require.NoError(t, double.Return([]compute.Value{do(double.Sin(x))}, nil))
	c, err := o.Closure()
	require.NoError(t, err)
	called, err := c.Call(double, do(c.Neg(o.f))) // the call is on the way to the sine
	require.NoError(t, err)
	require.NoError(t, c.Return([]compute.Value{do(c.Tanh(called[0]))}, nil))
	both, err := o.If(o.yes(), c, closure1(o, do(o.Cos(o.f))))
	require.NoError(t, err)
	unused, err := o.Closure()
	require.NoError(t, err)
	do(unused.Logistic(o.f))
	module := moduleFrom(t, o.program, []compute.Value{both[0], do(o.Add(o.vector, o.vector))})
	for name, want := range map[string]string{
		"sine": "Sin((Float32)[2, 3])", "negate": "Neg((Float32)[2, 3])", "tanh": "Tanh((Float32)[2, 3])", "cosine": "Cos((Float32)[2, 3])",
		"if": "If((Bool))", "add": "Add((Float32)[3], (Float32)[3])",
	} {
		line := strings.Count(module.Text()[:strings.Index(module.Text(), `"stablehlo.`+name+`"`)], "\n") + 1
		for _, words := range []string{fmt.Sprintf("-:%d:1: error: bad", line), "HLO opcode `" + name + "`"} {
			op, ok := module.Locate(words)
			require.True(t, ok, "%s: %s\n%s", name, words, module.Text())
			require.Equal(t, want, op.String())
			require.Regexp(t, `^hlo/location_test\.go:\d+$`, op.Where)
		}
	}
	require.Equal(t, 1, module.Ops[compute.OpTypeSin])
	require.Equal(t, 1, module.Ops[compute.OpTypeCall])
	require.Zero(t, module.Ops[compute.OpTypeLogistic])
}

func TestLargest(t *testing.T) {
	o := newOperands(t)
	wide := must1(t)(o.BroadcastInDim(o.scalar, shapes.Make(dtypes.Float32, 100, 100), nil))
	m := moduleFrom(t, o.program, []compute.Value{must1(t)(o.ReduceSum(wide, 0)), o.f})
	largest := m.Largest(2)
	require.Len(t, largest, 2)
	require.Equal(t, compute.OpTypeBroadcastInDim, largest[0].Kind)
	require.Equal(t, compute.OpTypeReduceSum, largest[1].Kind)
	require.Less(t, len(m.Largest(1000)), 1000)
}

// XLA ends the process if a value's number of elements overflows.
func TestF17_sizeThatOverflows(t *testing.T) {
	for _, dims := range [][]int{{1 << 40, 1 << 22}, {1 << 62}, {1 << 31, 1 << 31, 1 << 31}, {0, 1 << 62, 4}} {
		o := newOperands(t)
		_, err := o.BroadcastInDim(o.scalar, shapes.Make(dtypes.Float32, dims...), nil)
		var refused *hlo.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, compute.OpTypeBroadcastInDim, refused.Operation)
		require.ErrorContains(t, err, "is larger than")
		_, err = o.Parameter("x", shapes.Shape{DType: dtypes.Float32, Dimensions: dims}, nil)
		require.ErrorContains(t, err, "is larger than")
	}
}
