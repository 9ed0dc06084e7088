package hlo_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// runner runs operations one by one and counts them. It compiles each text once, as the eager strategy does.
type runner struct {
	*device
	texts    []string
	programs map[string]compute.Executable
}

func newRunner(t *testing.T) *runner {
	r := &runner{device: open(t), programs: map[string]compute.Executable{}}
	t.Cleanup(func() {
		for _, p := range r.programs {
			p.Finalize()
		}
	})
	return r
}

func (r *runner) one(s hlo.Single) ([]compute.Buffer, error) {
	text := s.Module.Text()
	r.texts = append(r.texts, text)
	exec := r.programs[text]
	if exec == nil {
		var err error
		if exec, err = r.compile(s.Module); err != nil {
			return nil, err
		}
		r.programs[text] = exec
	}
	return exec.Execute(s.Operands, make([]bool, len(s.Operands)), 0)
}

// run is the tests' run function, operation by operation.
func (r *runner) run(inputs []array, build builds) ([]array, error) {
	b := programOf(hlo.NewEager("test", r.one))
	in := make([]compute.Value, len(inputs))
	for i, x := range inputs {
		sent, err := r.BufferFromFlatData(0, x.flat, x.shape)
		if err != nil {
			return nil, err
		}
		if in[i], err = b.Known(compute.OpTypeParameter, x.shape, sent); err != nil {
			return nil, err
		}
	}
	outputs, err := build(b.Function, in)
	if err != nil {
		return nil, err
	}
	results := make([]array, len(outputs))
	for i, op := range outputs {
		v, err := b.Value(op)
		if err != nil {
			return nil, err
		}
		shape, err := b.OpShape(op)
		if err != nil {
			return nil, err
		}
		results[i] = zeros(shape)
		if err := v.ToFlatData(results[i].flat); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Random programs of all operations, run one by one, match the references of TestOperations.
func TestEagerOperations(t *testing.T) {
	r := newRunner(t)
	all := slices.DeleteFunc(operations(), func(name string) bool { return name == "RNGBitGenerator" })
	covered := map[string]map[string]int{"(by)": {}, "(chained)": {}, "(nested)": {}}
	outputs := 0
	for i := range max(len(all), programs/4) {
		from := &source{Rand: rand.New(rand.NewPCG(11, uint64(i)))}
		names := []string{all[i%len(all)], pick(from, smooth)}
		p := drawProgram(t, from, i, names, covered)
		got, err := r.run(p.inputs, p.build)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		for j, k := range p.known() {
			outputs++
			times := 1.0
			if k.want.shape.DType.Size() == 2 { // each operation rounds to 16 bits; a whole program may keep 32
				times = 4
			}
			if diff := differBy(times, got[j], k.want); diff != "" {
				t.Errorf("%s: output %d, of %s: %s", p.name, j, k.from, diff)
			}
		}
	}
	t.Logf("%d operations: %d programs of one, %d of them different, %d outputs", len(all), len(r.texts), len(r.programs), outputs)
}

// Operations of the same kind, shapes and attributes have the same text, so it can be a cache key.
func TestSingle_textIsTheOperation(t *testing.T) {
	r := newRunner(t)
	state := of([]int{3}, uint64(1), 2, 3)
	x, y := of([]int{2, 3}, float32(1), 2, 3, 4, 5, 6), of([]int{2, 3}, float32(9), 8, 7, 6, 5, 4)
	results, err := r.run([]array{x, y, state}, func(b compute.Function, in []compute.Value) ([]compute.Value, error) {
		var ops []compute.Value
		for _, pair := range [][2]int{{0, 1}, {1, 0}, {0, 0}} {
			sum, err := b.Add(in[pair[0]], in[pair[1]])
			if err != nil {
				return nil, err
			}
			ops = append(ops, sum)
		}
		for _, axis := range []int{0, 1} {
			sum, err := b.ReduceSum(in[0], axis)
			if err != nil {
				return nil, err
			}
			ops = append(ops, sum)
		}
		same, err := b.Identity(in[0])
		if err != nil {
			return nil, err
		}
		next, bits, err := b.RNGBitGenerator(in[2], shapes.Make(dtypes.Uint32, 4))
		return append(ops, same, next, bits), err
	})
	require.NoError(t, err)
	require.Len(t, r.texts, 6, "Identity needs no program")
	require.Equal(t, r.texts[0], r.texts[1])
	require.Equal(t, r.texts[0], r.texts[2])
	require.NotEqual(t, r.texts[3], r.texts[4])
	require.Equal(t, []float32{10, 10, 10, 10, 10, 10}, results[0].flat)
	require.Equal(t, []float32{2, 4, 6, 8, 10, 12}, results[2].flat)
	require.Equal(t, []float32{5, 7, 9}, results[3].flat)
	require.Equal(t, x, results[5])
	require.NotEqual(t, state, results[6])
}

// The same holds for operations with closures and functions, whatever else the builder has. Captured values become
// parameters.
func TestSingle_textWithClosures(t *testing.T) {
	r := newRunner(t)
	x, y := of([]int{2}, float32(1), 2), of([]int{2}, float32(30), 40)
	results, err := r.run([]array{x, y, of(nil, true), of(nil, false)}, func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
		var all []compute.Value
		for i, given := range [][]compute.Value{{in[0], in[1], in[2]}, {in[1], in[0], in[2]}, {in[0], in[1], in[3]}} {
			if i == 1 { // another operation in between
				all = append(all, must(f.Neg(in[0])))
			}
			square, err := named(f, []shapes.Shape{x.shape}, func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Mul(in[0], in[0]))
			})
			if err != nil {
				return nil, err
			}
			branch := func(body builds) compute.Function {
				c, err := f.Closure()
				if err != nil || define(c, nil, body) != nil {
					panic("no closure")
				}
				return c
			}
			chosen, err := f.If(given[2],
				branch(func(f compute.Function, _ []compute.Value) ([]compute.Value, error) {
					return one(f.Sub(given[0], given[1]))
				}),
				branch(func(f compute.Function, _ []compute.Value) ([]compute.Value, error) { return f.Call(square, given[1]) }))
			if err != nil {
				return nil, err
			}
			all = append(all, chosen...)
		}
		return all, nil
	})
	require.NoError(t, err)
	require.Len(t, r.texts, 4)
	require.Equal(t, r.texts[0], r.texts[2])
	require.Equal(t, r.texts[0], r.texts[3])
	require.Equal(t, []float32{-29, -38}, results[0].flat)
	require.Equal(t, []float32{29, 38}, results[2].flat)
	require.Equal(t, []float32{900, 1600}, results[3].flat)
}

// Unsupported operations are refused.
func TestEager_refuses(t *testing.T) {
	r := newRunner(t)
	eager, ordinary := programOf(hlo.NewEager("eager", r.one)), programOf(hlo.New("ordinary", nil))
	shape := shapes.Make(dtypes.Float32, 2)
	x, err := ordinary.Parameter("x", shape, nil)
	require.NoError(t, err)
	for _, row := range []struct {
		name, want string
		do         func() error
	}{
		{"a parameter", "has no parameters: give values by Known", func() error {
			_, err := eager.Parameter("x", shape, nil)
			return err
		}},
		{"compiling", "there are no outputs", func() error {
			_, err := eager.Finish(nil)
			return err
		}},
		{"a known value", "make it with NewEager", func() error {
			_, err := ordinary.Known(compute.OpTypeParameter, shape, nil)
			return err
		}},
		{"a value without elements' type", "type of elements", func() error {
			_, err := eager.Known(compute.OpTypeParameter, shapes.Shape{}, nil)
			return err
		}},
		{"reading", "does not run its operations", func() error {
			_, err := ordinary.Value(x)
			return err
		}},
		{"reading another's", "not of this builder", func() error {
			_, err := eager.Value(x)
			return err
		}},
		{"two devices", "operations that run one by one use one device", func() error {
			two := programOf(hlo.NewEager("two", r.one))
			if err := two.DistributedSPMD(2); err != nil {
				return err
			}
			_, err := two.Iota(shape, 0)
			return err
		}},
		{"a wrong shape", "Iota", func() error {
			_, err := eager.Iota(shape, 1)
			return err
		}},
	} {
		t.Run(row.name, func(t *testing.T) { require.ErrorContains(t, row.do(), row.want) })
	}
}
