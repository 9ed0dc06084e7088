package strategies_test

import (
	"errors"
	"math"
	goruntime "runtime"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func cpu(t *testing.T) *xla.Runtime {
	t.Helper()
	r := plugintest.CPU(t)
	return r
}

// mlp has what makes steps differ: dropout draws random numbers, batch normalisation changes variables besides the
// parameters.
func mlp(b *managed.Builder) {
	// No bias: its gradient before a batch normalisation is zero but for rounding, of which Adam makes whole steps.
	h := layers.Dense(b.Scope().In("hidden"), b.Field("x"), false, 16)
	h = norm.BatchNorm(b.Scope().In("norm"), h, -1).Done()
	h = layers.DropoutStatic(b.Scope(), activation.Relu(h), 0.25)
	logits := layers.Dense(b.Scope().In("logits"), h, true, 3)
	b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), logits)))
	b.Metric("accuracy", graph.ReduceAllMean(losses.Accuracy(b.Field("y"), logits)))
}

// points are rows of 5 numbers and their class.
func points(t *testing.T, n int) data.Batch {
	t.Helper()
	x, y := make([]float32, 5*n), make([]int32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(7*i + 1)))
	}
	for i := range y {
		y[i] = int32(i % 3)
	}
	set, err := data.New(data.X(x, n, 5), data.Y(y, n))
	require.NoError(t, err)
	for batch, err := range set.Batches(n).All() {
		require.NoError(t, err)
		return batch
	}
	return data.Batch{}
}

// training is a state with the steps that are made on it.
type training struct {
	t           *testing.T
	state       *managed.State
	train, test *managed.Stepper
}

func newTraining(t *testing.T, on strategies.Strategy, build managed.Build) *training {
	t.Helper()
	state, err := managed.New(on, managed.WithSeed(3), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done())))
	require.NoError(t, err)
	return &training{t, state, managed.TrainStep(build), managed.TestStep(build)}
}

func (r *training) close() {
	require.NoError(r.t, errors.Join(r.train.Close(), r.test.Close(), r.state.Close()))
}

// step makes a step and gives its numbers.
func (r *training) step(s *managed.Stepper, batch data.Batch) []float64 {
	r.t.Helper()
	_, logs, err := s.Step(r.t.Context(), r.state, batch)
	require.NoError(r.t, err)
	var numbers []float64
	for _, name := range []string{"loss", "accuracy"} {
		v, err := logs.Float(name)
		require.NoError(r.t, err)
		numbers = append(numbers, v)
	}
	return numbers
}

func (r *training) values() map[string]*tensors.Tensor {
	r.t.Helper()
	values := map[string]*tensors.Tensor{}
	for _, name := range r.state.Names() {
		v, err := r.state.Value(name)
		require.NoError(r.t, err)
		values[name] = v
	}
	return values
}

func TestEager_agreesWithJit(t *testing.T) {
	r, batch := cpu(t), points(t, 12)
	eager, jit := newTraining(t, strategies.Eager(r), mlp), newTraining(t, strategies.Jit(r), mlp)
	defer eager.close()
	defer jit.close()
	worst := 0.0
	const steps = 100
	for range steps {
		a, b := eager.step(eager.train, batch), jit.step(jit.train, batch)
		for i := range a {
			worst = max(worst, math.Abs(a[i]-b[i]))
		}
	}
	a, b := eager.step(eager.test, batch), jit.step(jit.test, batch)
	worst = max(worst, math.Abs(a[0]-b[0]), math.Abs(a[1]-b[1]))
	have, want := eager.values(), jit.values()
	require.Len(t, have, len(want))
	for name, v := range want {
		require.True(t, v.InDelta(have[name], 1e-5), "%s: %v, jit has %v", name, have[name], v)
	}
	require.Less(t, worst, 1e-5)
	t.Logf("%d train steps and a test step with dropout and batch normalisation under Adam: logs differ by %.1e at most; compiled in %v", steps, worst, eager.train.CompileTime()+eager.test.CompileTime())
}

// After its first step a step compiles nothing, and no value of a step outlives it but those of the state. A graph is
// built for each step; GoMLX's variables remember all of them, but not what was in them.
func TestEager_leavesNothing(t *testing.T) {
	r, batch := cpu(t), points(t, 12)
	heap := func() int64 {
		var m goruntime.MemStats
		goruntime.GC() // also so that what other tests left to the collector is not counted here
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	heap()
	before := pjrt.Live()
	eager := newTraining(t, strategies.Eager(r), mlp)
	eager.step(eager.train, batch)
	compiled, first, used := eager.train.CompileTime(), pjrt.Live(), heap()
	require.Positive(t, compiled)
	const steps = 50
	for range steps {
		eager.step(eager.train, batch)
		require.Equal(t, compiled, eager.train.CompileTime(), "something was compiled again")
		require.Equal(t, first, pjrt.Live())
	}
	grown, variables := (heap()-used)/steps, int64(len(eager.state.Names()))
	require.Less(t, grown, 1500*variables)
	require.Equal(t, before.Buffers+variables, first.Buffers)
	eager.close()
	require.Equal(t, before, pjrt.Live())
	t.Logf("%d operations compiled in the first step, 0 in %d more; live buffers +%d all the time, those of the state; the heap grows by %d bytes a step, %d for each of %d variables",
		first.Executables-before.Executables, steps, first.Buffers-before.Buffers, grown, grown/variables, variables)
}

// A wrong shape is an error before anything runs, as with jit.
func TestEager_wrongShapeNamesTheLine(t *testing.T) {
	where := ""
	eager := newTraining(t, strategies.Eager(cpu(t)), func(b *managed.Builder) {
		x := b.Field("x")
		where = here(1)
		b.Loss("loss", graph.ReduceAllMean(graph.Dot(x, x).Product()))
	})
	defer eager.close()
	_, _, err := eager.train.Step(t.Context(), eager.state, points(t, 12))
	require.ErrorContains(t, err, where)
	require.ErrorContains(t, err, "lower train step: ")
	t.Log(err)
}

// The step's function is called once for its shapes, without values, then in each step with that step's.
func TestEager_valuesCanBeRead(t *testing.T) {
	var read []float32
	without := 0
	eager := newTraining(t, strategies.Eager(cpu(t)), func(b *managed.Builder) {
		weights := b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
		loss := graph.Square(graph.MulScalar(weights, 3))
		v, err := xla.Value(loss)
		if err != nil {
			require.ErrorContains(t, err, "the node has no value")
			without++
		} else {
			read = append(read, v.Value().(float32))
		}
		b.Loss("loss", loss)
		b.Metric("accuracy", loss)
	})
	defer eager.close()
	for range 3 {
		numbers := eager.step(eager.train, points(t, 12))
		require.InDelta(t, numbers[0], read[len(read)-1], 1e-6)
	}
	require.Equal(t, 1, without)
	require.Len(t, read, 3)
	require.Less(t, read[2], read[0])
}

// The caller owns the outputs, even if the graph returns a value of the state, or one value twice.
func TestEager_outputsAreTheCallers(t *testing.T) {
	s, err := strategies.Parse("eager", cpu(t))
	require.NoError(t, err)
	require.Equal(t, "eager", s.String())
	shape := shapes.Make(dtypes.Float32, 2)
	before := pjrt.Live().Buffers
	p, err := s.Compile(strategies.Step{
		Name:  "swap",
		Batch: []strategies.Input{{Name: "x", Shape: shape}},
		Build: func(g *graph.Graph, batch []*graph.Node) strategies.Built {
			a, b, c := graph.Parameter(g, "a", shape), graph.Parameter(g, "b", shape), graph.Parameter(g, "c", shape)
			sum := graph.Add(a, batch[0])
			return strategies.Built{
				State:   []strategies.Slot{{Parameter: a, New: b}, {Parameter: b, New: a}, {Parameter: c}},
				Outputs: []*graph.Node{sum, sum, batch[0], c},
			}
		}})
	require.NoError(t, err)
	require.Equal(t, 1, p.Block())
	require.Contains(t, p.StableHLO(), "stablehlo.add")
	state := []compute.Buffer{put(t, s, 1, 2), put(t, s, 10, 20), put(t, s, 5, 6)}
	x := data.Batch{Fields: []data.Field{data.X([]float32{100, 200}, 2)}}
	for _, bad := range [][]data.Batch{nil, {x, x}, {{}}, {{Fields: []data.Field{data.X([]float32{1}, 1)}}}} {
		_, _, _, err := p.Start(state, bad)
		require.ErrorContains(t, err, "strategies: eager: run swap: ")
	}
	changed, outputs, running, err := p.Start(state, []data.Batch{x})
	require.NoError(t, err)
	require.Nil(t, running, "it is over")
	require.Equal(t, []float32{10, 20}, fetch(t, s, changed[0]))
	require.Equal(t, []float32{1, 2}, fetch(t, s, changed[1]))
	require.Nil(t, changed[2])
	for i, want := range [][]float32{{101, 202}, {101, 202}, {100, 200}, {5, 6}} {
		require.Equal(t, want, fetch(t, s, outputs[i]))
	}
	require.NoError(t, s.Free(append(outputs, changed[0], changed[1], state[2])...))
	require.NoError(t, errors.Join(p.Close(), p.Close()))
	require.Equal(t, before, pjrt.Live().Buffers)
	_, _, _, err = p.Start(state, []data.Batch{x})
	require.ErrorContains(t, err, "the program is closed")
}

func TestEager_refusesTheGoBackend(t *testing.T) {
	r := plugintest.Go(t)
	_, err := strategies.Eager(r).Compile(strategies.Step{Name: "step"})
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	t.Log(err)
}
