package hlo_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla/hlo"
)

// runner runs operations one by one, and counts them.
type runner struct {
	*device
	texts []string
}

func (r *runner) one(s hlo.Single) ([]backends.Buffer, error) {
	r.texts = append(r.texts, s.Module.Text())
	exec, err := r.compile(s.Module)
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	return exec.Execute(s.Operands, make([]bool, len(s.Operands)), 0)
}

// run is the [run] of the tests, operation by operation.
func (r *runner) run(inputs []array, build builds) ([]array, error) {
	b := hlo.NewEager("test", r.one)
	in := make([]backends.Op, len(inputs))
	for i, x := range inputs {
		sent, err := r.BufferFromFlatData(0, x.flat, x.shape)
		if err != nil {
			return nil, err
		}
		if in[i], err = b.Known(backends.OpTypeParameter, x.shape, sent); err != nil {
			return nil, err
		}
	}
	outputs, err := build(b, in)
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
		if err := r.BufferToFlatData(v, results[i].flat); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Random programs of all operations give the same, operation by operation, as the references of TestOperations.
func TestEagerOperations(t *testing.T) {
	r := &runner{device: open(t)}
	all := slices.DeleteFunc(operations(), func(name string) bool { return name == "RNGBitGenerator" })
	covered := map[string]map[string]int{"(by)": {}, "(chained)": {}}
	outputs := 0
	for i := range max(len(all), programs/4) {
		from := &source{Rand: rand.New(rand.NewPCG(11, uint64(i)))}
		names := []string{all[i%len(all)], pick(from, smooth)}
		build, inputs, made := drawProgram(t, from, names, covered)
		got, err := r.run(inputs, build)
		if err != nil {
			t.Errorf("program %d of %v: %v", i, names, err)
			continue
		}
		for j, k := range made() {
			outputs++
			times := 1.0
			if k.want.shape.DType.Size() == 2 { // each operation rounds to 16 bits, where a whole program keeps 32 in between
				times = 4
			}
			if diff := differBy(times, got[j], k.want); diff != "" {
				t.Errorf("program %d: output %d, of %s: %s", i, j, k.from, diff)
			}
		}
	}
	t.Logf("%d operations: %d programs of one, %d outputs", len(all), len(r.texts), outputs)
}

// The text of an operation is that of every one of its kind, shapes and attributes, so that it can be the key of a cache.
func TestSingle_textIsTheOperation(t *testing.T) {
	r := &runner{device: open(t)}
	state := of([]int{3}, uint64(1), 2, 3)
	x, y := of([]int{2, 3}, float32(1), 2, 3, 4, 5, 6), of([]int{2, 3}, float32(9), 8, 7, 6, 5, 4)
	results, err := r.run([]array{x, y, state}, func(b backends.Builder, in []backends.Op) ([]backends.Op, error) {
		var ops []backends.Op
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

// What does not go one by one is refused.
func TestEager_refuses(t *testing.T) {
	r := &runner{device: open(t)}
	eager, ordinary := hlo.NewEager("eager", r.one), hlo.New("ordinary", nil)
	shape := shapes.Make(dtypes.Float32, 2)
	x, err := ordinary.Parameter("x", shape, nil)
	require.NoError(t, err)
	for _, row := range []struct {
		name, want string
		do         func() error
	}{
		{"a parameter", "takes values by Known", func() error {
			_, err := eager.Parameter("x", shape, nil)
			return err
		}},
		{"compiling", "there are no outputs", func() error {
			_, err := eager.Compile(nil, nil)
			return err
		}},
		{"a known value", "make it with NewEager", func() error {
			_, err := ordinary.Known(backends.OpTypeParameter, shape, nil)
			return err
		}},
		{"a value without elements' type", "type of elements", func() error {
			_, err := eager.Known(backends.OpTypeParameter, shapes.Shape{}, nil)
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
		{"two devices", "operation by operation there is one", func() error {
			two := hlo.NewEager("two", r.one)
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
