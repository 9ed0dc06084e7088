package optim_test

import (
	"flag"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", draws); err != nil { // a command line that says otherwise is parsed later
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// The problem is that of testdata/trajectories.py: w [6, 4] and b [4], a bowl around a target, and a slope that each
// batch brings. All inputs are exact.
const (
	matrixSize = 24
	size       = matrixSize + 4
)

// made is the function of the same name in the script.
func made(n, a, m int, d float32, step int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32((i*a+7*step)%m-m/2) / d
	}
	return v
}

func curvature(n, m int, d float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%m+1) / d
	}
	return v
}

// slopes are the batches of a run.
func slopes(t require.TestingT, steps, batch int) []data.Batch {
	var x []float32
	for step := range steps * batch {
		x = append(x, made(size, 13, 17, 16, step)...)
	}
	set, err := data.New(data.X(x, steps*batch, size))
	require.NoError(t, err)
	var all []data.Batch
	for b, err := range set.Batches(batch).All() {
		require.NoError(t, err)
		all = append(all, b)
	}
	return all
}

// bowl is the problem's loss, a mean over the batch.
func bowl(b *managed.Builder) { b.Loss("loss", bowlLoss(b)) }

func bowlLoss(b *managed.Builder) *graph.Node {
	g := b.Graph()
	part := func(name string, start, target, h []float32, dims []int, slope *graph.Node) *graph.Node {
		p := b.Scope().VariableWithValue(name, tensors.FromFlatDataAndDimensions(start, dims...)).NodeValue(g)
		constant := func(v []float32) *graph.Node {
			return graph.Const(g, tensors.FromFlatDataAndDimensions(v, dims...))
		}
		well := graph.MulScalar(graph.Mul(constant(h), graph.Square(graph.Sub(p, constant(target)))), 0.5)
		return graph.ReduceAllSum(graph.Add(well, graph.Mul(p, graph.Reshape(slope, dims...))))
	}
	slope := graph.ReduceMean(b.Field("x"), 0)
	return graph.Add(
		part("w", made(24, 5, 11, 8, 0), made(24, 7, 13, 8, 0), curvature(24, 5, 8), []int{6, 4}, graph.Slice(slope, graph.AxisRange(0, matrixSize))),
		part("b", made(4, 3, 7, 4, 0), made(4, 5, 7, 2, 0), curvature(4, 3, 4), []int{4}, graph.Slice(slope, graph.AxisRange(matrixSize, size))))
}

func newState(t testing.TB, r *xla.Runtime, o *optim.Optimizer) *managed.State {
	t.Helper()
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(o))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	return state
}

func trainStep(t testing.TB, build managed.Build) *managed.Stepper {
	t.Helper()
	step := managed.TrainStep(build)
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	return step
}

// train makes the steps of some batches, as blocks.
func train(t require.TestingT, step *managed.Stepper, state *managed.State, batches []data.Batch) {
	_, logs, err := step.StepBlock(background, state, batches)
	require.NoError(t, err)
	require.Len(t, logs, len(batches))
}

// run makes a state and trains it.
func run(t testing.TB, r *xla.Runtime, o *optim.Optimizer, batches []data.Batch) *managed.State {
	t.Helper()
	state := newState(t, r, o)
	train(t, trainStep(t, bowl), state, batches)
	return state
}

func floats(t require.TestingT, state *managed.State, name string) []float32 {
	v, err := state.Value(name)
	require.NoError(t, err)
	flat, err := tensors.CopyFlatData[float32](v)
	require.NoError(t, err)
	return flat
}

func parameters(t require.TestingT, state *managed.State) []float32 {
	return append(floats(t, state, "/w"), floats(t, state, "/b")...)
}

func number(t require.TestingT, state *managed.State, name string) float64 {
	v, err := state.Value(name)
	require.NoError(t, err)
	switch n := v.Value().(type) {
	case int64:
		return float64(n)
	case int32:
		return float64(n)
	case float32:
		return float64(n)
	}
	require.Fail(t, "no number", "%s is %s", name, v.Shape())
	return math.NaN()
}

// bits returns all values of a state.
func bits(t require.TestingT, state *managed.State) map[string][]byte {
	all := map[string][]byte{}
	for _, name := range state.Names() {
		v, err := state.Value(name)
		require.NoError(t, err)
		require.NoError(t, v.ConstBytes(func(b []byte) { all[name] = append([]byte(nil), b...) }))
	}
	return all
}

// farthest is the largest difference of two vectors, relative where the wanted value is above 1.
func farthest(t require.TestingT, want, got []float32) float64 {
	require.Len(t, got, len(want))
	most := 0.0
	for i := range want {
		d := math.Abs(float64(want[i])-float64(got[i])) / max(1, math.Abs(float64(want[i])))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		most = max(most, d)
	}
	return most
}
