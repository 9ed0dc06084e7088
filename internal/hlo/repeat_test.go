package hlo_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// moduleOf builds a module without compiling it.
func moduleOf(t testing.TB, name string, build func(b program) []compute.Value) *hlo.Module {
	t.Helper()
	b := programOf(hlo.New(name, func(m *hlo.Module) (compute.Executable, error) { return &executable{module: m}, nil }))
	return moduleFrom(t, b, build(b))
}

func moduleFrom(t testing.TB, b program, outputs []compute.Value) *hlo.Module {
	t.Helper()
	exec, err := b.Finish(outputs)
	require.NoError(t, err)
	return exec.(*executable).module
}

// must1 ends the test if an operation cannot be built.
func must1(t testing.TB) func(op compute.Value, err error) compute.Value {
	return func(op compute.Value, err error) compute.Value {
		t.Helper()
		require.NoError(t, err)
		return op
	}
}

// stepModule is one training step of a linear model with random noise. The state is the weights and the generator's
// state, the batch is x and y, and the rate is constant. Further outputs are the loss (a scalar), the gradient, and
// whether the loss is small.
func stepModule(t testing.TB) *hlo.Module {
	return moduleOf(t, "step", func(b program) []compute.Value {
		do := must1(t)
		f32 := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
		x := do(b.Parameter("x", f32(4, 3), nil))
		w := do(b.Parameter("w", f32(3), nil))
		rate := do(b.Parameter("rate", f32(), nil))
		random := do(b.Parameter("random", shapes.Make(dtypes.Uint64, 3), nil))
		y := do(b.Parameter("y", f32(4), nil))
		next, bits, err := b.RNGBitGenerator(random, shapes.Make(dtypes.Uint32, 4))
		require.NoError(t, err)
		noise := do(b.Mul(do(b.ConvertDType(bits, dtypes.Float32)), do(b.Constant([]float32{1e-10}))))
		off := do(b.Sub(do(b.Add(do(b.DotGeneral(x, []int{1}, nil, w, []int{0}, nil, compute.DotGeneralConfig{})), noise)), y))
		gradient := do(b.DotGeneral(off, []int{0}, nil, x, []int{0}, nil, compute.DotGeneralConfig{}))
		loss := do(b.ReduceSum(do(b.Mul(off, off))))
		small := do(b.LessThan(loss, do(b.Constant([]float32{1}))))
		moved := do(b.Sub(w, do(b.Mul(rate, gradient))))
		require.NoError(t, b.InPlace(0, 1))
		require.NoError(t, b.InPlace(1, 3))
		return []compute.Value{moved, next, loss, gradient, small}
	})
}

// part returns rows from to to of a stacked array, padded to k with other values.
func part(a array, from, to, k int) array {
	row := a.shape.Size() / a.shape.Dimensions[0]
	out := zeros(shapes.Make(a.shape.DType, append([]int{k}, a.shape.Dimensions[1:]...)...))
	for i := range out.shape.Size() {
		out.set(i, 77)
	}
	for i := range (to - from) * row {
		copyElement(out, i, a, from*row+i)
	}
	return out
}

// 12 steps are bit-identical however they are divided over runs of one program.
func TestStepsGrouping(t *testing.T) {
	d := open(t)
	const k, steps = 12, 12
	step := stepModule(t)
	looped, err := step.Steps(k, 0, 4)
	require.NoError(t, err)
	exec, err := d.compile(looped)
	require.NoError(t, err)
	defer exec.Finalize()
	alone, err := d.compile(step)
	require.NoError(t, err)
	defer alone.Finalize()

	r := &source{Rand: rand.New(rand.NewPCG(1, 2))}
	xs, ys := draw(r, shapes.Make(dtypes.Float32, steps, 4, 3), -1, 1), draw(r, shapes.Make(dtypes.Float32, steps, 4), -1, 1)
	rate := of(nil, float32(0.1))
	// train returns the last state and each step's logs.
	train := func(groups []int) (state []array, logs [][]byte) {
		state = []array{of([]int{3}, float32(0), 0, 0), of([]int{3}, uint64(1), 2, 3)}
		at := 0
		for _, n := range groups {
			got, err := execute(d, exec, 1, part(xs, at, at+n, k), state[0], rate, state[1], part(ys, at, at+n, k), of(nil, int32(n)))
			require.NoError(t, err)
			state = got[:2]
			for i := range n {
				var row []byte
				for _, log := range got[2:] {
					all := memory(log.flat)
					row = append(row, all[i*len(all)/k:(i+1)*len(all)/k]...)
				}
				logs = append(logs, row)
			}
			for _, log := range got[2:] { // rows of steps that did not run
				all := memory(log.flat)
				require.Equal(t, make([]byte, len(all)*(k-n)/k), all[n*len(all)/k:])
			}
			at += n
		}
		return state, logs
	}
	state, logs := train(slices.Repeat([]int{1}, steps))
	require.NotEqual(t, []float32{0, 0, 0}, state[0].flat)
	groupings := 1
	rapid.Check(t, func(rt *rapid.T) {
		var groups []int
		for left := steps; left > 0; {
			n := rapid.IntRange(1, left).Draw(rt, "group")
			groups, left = append(groups, n), left-n
		}
		gotState, gotLogs := train(groups)
		require.Equal(rt, state, gotState, "groups %v", groups)
		require.Equal(rt, logs, gotLogs, "groups %v", groups)
		groupings++
	})
	// The step as its own program is compiled separately and may differ in the last bit.
	own := []array{of([]int{3}, float32(0), 0, 0), of([]int{3}, uint64(1), 2, 3)}
	for i := range steps {
		x, y := part(xs, i, i+1, 1), part(ys, i, i+1, 1)
		x.shape, y.shape = shapes.Make(dtypes.Float32, 4, 3), shapes.Make(dtypes.Float32, 4)
		got, err := execute(d, alone, 1, x, own[0], rate, own[1], y)
		require.NoError(t, err)
		own = got[:2]
	}
	require.Empty(t, differ(own[0], state[0]))
	require.Equal(t, own[1], state[1])
	t.Logf("%d groupings of %d steps: the same bits; the step's own program: weights %v, in blocks %v", groupings, steps, own[0].flat, state[0].flat)
}

// A loop, a branch and a function in steps, and in a scan of steps.
func TestStepsWithFlow(t *testing.T) {
	d := open(t)
	i32 := shapes.Make(dtypes.Int32)
	step := moduleOf(t, "collatz", func(b program) []compute.Value {
		do := must1(t)
		total, x := do(b.Parameter("total", i32, nil)), do(b.Parameter("x", i32, nil))
		require.NoError(t, b.InPlace(0, 0))
		one, two := do(b.Constant([]int32{1})), do(b.Constant([]int32{2}))
		odd, err := b.NewFunction("step 0") // the text's own name for the steps
		require.NoError(t, err)
		require.NoError(t, define(odd, []shapes.Shape{i32}, func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
			three := do(f.Constant([]int32{3}))
			return []compute.Value{do(f.Add(do(f.Mul(in[0], three)), do(f.Constant([]int32{1}))))}, nil
		}))
		closure := func(body func(f compute.Function, in []compute.Value) ([]compute.Value, error), parameters ...shapes.Shape) compute.Function {
			f, err := b.Closure()
			require.NoError(t, err)
			require.NoError(t, define(f, parameters, body))
			return f
		}
		out, err := b.While(
			closure(func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return []compute.Value{do(f.GreaterThan(in[0], one))}, nil
			}, i32, i32),
			closure(func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				next, err := f.If(do(f.Equal(do(f.Rem(in[0], two)), one)),
					closure(func(g compute.Function, _ []compute.Value) ([]compute.Value, error) { return g.Call(odd, in[0]) }),
					closure(func(g compute.Function, _ []compute.Value) ([]compute.Value, error) {
						return []compute.Value{do(g.Div(in[0], two))}, nil
					}))
				return append(next, do(f.Add(in[1], one))), err
			}, i32, i32), x, do(b.Constant([]int32{0})))
		require.NoError(t, err)
		return []compute.Value{do(b.Add(total, out[1])), out[1]}
	})
	steps, err := step.Steps(4, 1)
	require.NoError(t, err)
	got := runModule(t, d, steps, of(nil, int32(0)), of([]int{4}, int32(6), 7, 27, 1), of(nil, int32(3)))
	require.Equal(t, []int32{8 + 16 + 111}, got[0].flat)
	require.Equal(t, []int32{8, 16, 111, 0}, got[1].flat)
	scan, err := step.Scan(2, map[int]int{0: 0}, 1)
	require.NoError(t, err)
	twice, err := scan.Scan(2, map[int]int{0: 0}, 1)
	require.NoError(t, err)
	got = runModule(t, d, twice, of(nil, int32(0)), of([]int{2, 2}, int32(6), 7, 27, 1))
	require.Equal(t, []int32{8 + 16 + 111}, got[0].flat)
	require.Equal(t, []int32{8, 16, 111, 0}, got[1].flat)
	op, ok := twice.Locate("HLO opcode `multiply`")
	require.True(t, ok)
	require.Equal(t, "Mul((Int32), (Int32))", op.String())
}

func TestScan(t *testing.T) {
	d := open(t)
	// Running sums: carry + x, and the count of elements so far.
	sum := moduleOf(t, "sum", func(b program) []compute.Value {
		do := must1(t)
		carry, x := do(b.Parameter("carry", shapes.Make(dtypes.Int32, 2), nil)), do(b.Parameter("x", shapes.Make(dtypes.Int32, 2), nil))
		total := do(b.Add(carry, x))
		return []compute.Value{do(b.Mul(total, total)), total}
	})
	scanned, err := sum.Scan(3, map[int]int{1: 0}, 1)
	require.NoError(t, err)
	got := runModule(t, d, scanned, of([]int{2}, int32(1), 1), of([]int{3, 2}, int32(1), 2, 3, 4, 5, 6))
	require.Equal(t, []int32{4, 9, 25, 49, 100, 169}, got[0].flat)
	require.Equal(t, []int32{10, 13}, got[1].flat)
	// A scan of a scan.
	twice, err := scanned.Scan(2, map[int]int{1: 0}, 1)
	require.NoError(t, err)
	got = runModule(t, d, twice, of([]int{2}, int32(0), 0), of([]int{2, 3, 2}, int32(1), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
	require.Equal(t, []int32{1, 1, 4, 4, 9, 9, 16, 16, 25, 25, 36, 36}, got[0].flat)
	require.Equal(t, []int32{6, 6}, got[1].flat)
	require.Equal(t, []int{2, 3, 2}, got[0].shape.Dimensions)
}

func TestRepeatWrong(t *testing.T) {
	step := stepModule(t)
	looped, err := step.Steps(3, 0, 4)
	require.NoError(t, err)
	plain := moduleOf(t, "plain", func(b program) []compute.Value {
		return []compute.Value{must1(t)(b.Parameter("x", shapes.Make(dtypes.Float32), nil))}
	})
	for _, row := range []struct {
		name, want string
		do         func() (*hlo.Module, error)
	}{
		{"length 0", "length 0, expected from 1", func() (*hlo.Module, error) { return step.Steps(0, 0) }},
		{"no such parameter", "[9], expected axes from 0 to 4", func() (*hlo.Module, error) { return step.Steps(2, 9) }},
		{"twice", "names axis 0 twice", func() (*hlo.Module, error) { return step.Steps(2, 0, 0) }},
		{"state stacked", "parameter 1 is both stacked and an earlier output", func() (*hlo.Module, error) { return step.Steps(2, 1) }},
		{"steps of steps", "one of steps already", func() (*hlo.Module, error) { return looped.Steps(2, 0) }},
		{"nothing changes", "each run would be the same", func() (*hlo.Module, error) { return plain.Steps(2) }},
		{"shapes", "expected the same shape", func() (*hlo.Module, error) { return step.Scan(2, map[int]int{2: 1}) }},
		{"no such output", "there are 5 outputs", func() (*hlo.Module, error) { return step.Scan(2, map[int]int{7: 1}) }},
		{"two to one", "two outputs become parameter 1", func() (*hlo.Module, error) { return step.Scan(2, map[int]int{0: 1, 3: 1}) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.do()
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, "hlo: ")
		})
	}
}

// The text aliases the state in the step and in its blocks. A donated input is consumed.
func TestInPlaceSteps(t *testing.T) {
	d := open(t)
	step := stepModule(t)
	looped, err := step.Steps(2, 0, 4)
	require.NoError(t, err)
	for _, m := range []*hlo.Module{step, looped} {
		require.Contains(t, m.Text(), "%p1: tensor<3xf32> {tf.aliasing_output = 0 : i32}")
		require.Contains(t, m.Text(), "%p3: tensor<3xui64> {tf.aliasing_output = 1 : i32}")
		require.Equal(t, map[int]int{0: 1, 1: 3}, m.InPlace)
	}
	exec, err := d.compile(looped)
	require.NoError(t, err)
	defer exec.Finalize()
	inputs := []array{zeros(shapes.Make(dtypes.Float32, 2, 4, 3)), of([]int{3}, float32(1), 2, 3), of(nil, float32(0)), of([]int{3}, uint64(1), 2, 3), zeros(shapes.Make(dtypes.Float32, 2, 4)), of(nil, int32(2))}
	sent := make([]compute.Buffer, len(inputs))
	for i, in := range inputs {
		sent[i], err = d.BufferFromFlatData(0, in.flat, in.shape)
		require.NoError(t, err)
	}
	results, err := exec.Execute(sent, []bool{false, true, false, true, false, false}, 0)
	require.NoError(t, err)
	for i, in := range sent {
		err := in.ToFlatData(zeros(inputs[i].shape).flat)
		require.Equal(t, i == 1 || i == 3, err != nil, "input %d after the run: %v", i, err)
		require.NoError(t, in.Finalize())
	}
	for _, r := range results {
		require.NoError(t, r.Finalize())
	}
}
