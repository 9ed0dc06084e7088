package strategytest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/ops"
)

const tolerance = 1e-5

const comparedSteps = 100

// Run runs the suite. Among other checks, 100 Adam steps of a model with loops and branches match jit to 1e-5, and a
// resumed run is bit-identical, also if parameters join the optimizer's groups later. open returns the strategy on a
// runtime of the CPU or the Go backend, which the test closes.
func Run(t *testing.T, open func(t *testing.T) strategies.Strategy) {
	t.Run("values come back", func(t *testing.T) { valuesComeBack(t, open(t)) })
	t.Run("a step", func(t *testing.T) { aStep(t, open(t)) })
	t.Run("wrong batches leave the state", func(t *testing.T) { wrongBatches(t, open(t)) })
	t.Run("agrees with jit", func(t *testing.T) { agreesWithJit(t, open(t)) })
	t.Run("blocks", func(t *testing.T) { blocks(t, open(t)) })
	t.Run("a run is resumed", func(t *testing.T) { resumes(t, open(t)) })
	t.Run("parameters that join late", func(t *testing.T) { joinLate(t, open(t)) })
	t.Run("evaluations", func(t *testing.T) { evaluations(t, open(t)) })
	t.Run("nothing is left", func(t *testing.T) { nothingIsLeft(t, open(t)) })
}

func valuesComeBack(t *testing.T, s strategies.Strategy) {
	for _, value := range []any{
		float32(3), []float32{1, 2, 3}, [][]float32{{1, 2}, {3, 4}, {5, 6}, {7, 8}}, []int64{1 << 40, -1}, []bool{true, false, true},
		[][][]float64{{{1, 2, 3, 4, 5, 6, 7, 8}}, {{9, 10, 11, 12, 13, 14, 15, 16}}}, []uint64{1, 2, 3},
	} {
		want := tensors.MustFromAnyValue(value)
		b, err := s.Put("/value", tensors.MustFromAnyValue(value))
		require.NoError(t, err)
		for range 2 { // repeated fetches are allowed
			got, err := s.Fetch(b)
			require.NoError(t, err)
			require.True(t, want.Equal(got), "%v came back as %v", want, got)
			memory := make([]byte, want.ByteSize())
			require.NoError(t, s.FetchInto(b, memory))
			require.NoError(t, want.ConstBytes(func(bytes []byte) { require.Equal(t, bytes, memory) }))
			require.Error(t, s.FetchInto(b, memory[1:]))
		}
		parts, cut := s.Parts(b)
		require.True(t, cut || parts == nil)
		for _, part := range parts { // as checkpoints save it
			memory := make([]byte, part.Shape.ByteSize())
			require.NoError(t, s.FetchInto(part.Buffer, memory))
			require.Less(t, part.Shape.ByteSize(), want.Shape().ByteSize())
			require.Len(t, part.Start, want.Rank())
			require.NoError(t, want.ConstBytes(func(bytes []byte) { require.Contains(t, string(bytes), string(memory[:1])) }))
		}
		require.NoError(t, s.Free(b))
	}
	require.NoError(t, s.Free(nil, nil))
	_, err := s.Fetch(nil)
	require.Error(t, err)
	require.Error(t, s.FetchInto(nil, nil))
}

func sums(t *testing.T, s strategies.Strategy, examples int) strategies.Program {
	shape := shapes.Make(dtypes.Float32)
	p, err := s.Compile(strategies.Step{
		Name:  "sums",
		Batch: []strategies.Input{{Name: "x", Shape: shapes.Make(dtypes.Float32, examples, 2)}},
		Build: func(g *graph.Graph, batch []*graph.Node) strategies.Built {
			a, b := graph.Parameter(g, "/a", shape), graph.Parameter(g, "/b", shape)
			sum := graph.ReduceAllSum(batch[0])
			return strategies.Built{
				State:   []strategies.Slot{{Parameter: a, New: graph.Add(a, graph.Mul(b, sum))}, {Parameter: b}},
				Outputs: []*graph.Node{sum, graph.Neg(batch[0])},
			}
		}})
	require.NoError(t, err)
	return p
}

func scalar(t *testing.T, s strategies.Strategy, b compute.Buffer) float32 {
	v, err := s.Fetch(b)
	require.NoError(t, err)
	return tensors.ToScalar[float32](v)
}

func aStep(t *testing.T, s strategies.Strategy) {
	const examples = 8
	p := sums(t, s, examples)
	defer func() { require.NoError(t, p.Close()) }()
	a, err := s.Put("/a", tensors.FromScalar(float32(1)))
	require.NoError(t, err)
	b, err := s.Put("/b", tensors.FromScalar(float32(2)))
	require.NoError(t, err)
	flat := make([]float32, 2*examples)
	for i := range flat {
		flat[i] = float32(i)
	}
	want := float32(1)
	for i := range 3 {
		changed, outputs, running, err := p.Start([]compute.Buffer{a, b}, []data.Batch{{Fields: []data.Field{data.X(flat, examples, 2)}}})
		require.NoError(t, err)
		if running != nil {
			require.NoError(t, running.Wait())
			require.NoError(t, running.Wait())
			require.True(t, running.Over())
		}
		require.Len(t, changed, 2)
		require.Nil(t, changed[1], "the step leaves it unchanged")
		require.Len(t, outputs, 2)
		require.Equal(t, float32(120), scalar(t, s, outputs[0]))
		batch, err := s.Fetch(outputs[1])
		require.NoError(t, err)
		require.Equal(t, []int{examples, 2}, batch.Shape().Dimensions, "an output is that of all examples")
		require.Equal(t, float32(-15), tensors.MustCopyFlatData[float32](batch)[15])
		require.NoError(t, s.Free(outputs...))
		a = changed[0]
		want += 240
		require.Equal(t, want, scalar(t, s, a), "step %d", i)
		require.Equal(t, float32(2), scalar(t, s, b))
	}
	require.NoError(t, s.Free(a, b))
	if !onGo(s) {
		require.Contains(t, p.StableHLO(), "func.func public @main")
	}
}

func wrongBatches(t *testing.T, s strategies.Strategy) {
	p := sums(t, s, 8)
	defer func() { require.NoError(t, p.Close()) }()
	a, err := s.Put("/a", tensors.FromScalar(float32(1)))
	require.NoError(t, err)
	b, err := s.Put("/b", tensors.FromScalar(float32(2)))
	require.NoError(t, err)
	state := []compute.Buffer{a, b}
	whole := data.Batch{Fields: []data.Field{data.X(make([]float32, 16), 8, 2)}}
	for name, batches := range map[string][]data.Batch{
		"none":       {},
		"no field":   {{}},
		"wrong type": {{Fields: []data.Field{data.X(make([]int32, 16), 8, 2)}}},
		"wrong dims": {{Fields: []data.Field{data.X(make([]float32, 16), 16)}}},
		"too short":  {{Fields: []data.Field{data.X(make([]float32, 16)[:15], 8, 2)}}},
		"too long":   {{Fields: []data.Field{data.X(make([]float32, 17), 8, 2)}}},
		"too many":   {whole, whole},
	} {
		_, _, _, err := p.Start(state, batches)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, strategies.ErrStateLost, name)
		require.Equal(t, float32(1), scalar(t, s, a), name)
	}
	_, _, _, err = p.Start(state[:1], []data.Batch{whole})
	require.Error(t, err)
	require.NoError(t, s.Free(state...))
}

func deep(b *managed.Builder) {
	// A bias's gradient would be rounding error.
	h := layers.Dense(b.Scope().In("a"), b.Field("x"), false, 16)
	whole := b.Graph().Backend().Name() == "lazo"
	if whole {
		h = norm.BatchNorm(b.Scope().In("norm"), h, -1).Done()
	}
	h = layers.Dropout(b.Scope().In("drop"), graph.Tanh(h), graph.Scalar(b.Graph(), h.DType(), 0.3))
	if whole {
		h = looped(b, h)
	}
	h = layers.Dense(b.Scope().In("b"), h, true, 1)
	b.Loss("loss", graph.Square(graph.Sub(h, b.Field("y"))))
	b.Metric("size", graph.Abs(h))
}

func looped(b *managed.Builder, h *graph.Node) *graph.Node {
	g, dims := h.Graph(), h.Shape().Dimensions
	weights := b.Scope().In("loop").VariableWithShape("kernel", shapes.Make(h.DType(), 4, 4)).NodeValue(g)
	parts := graph.Reshape(h, dims[0], 4, 4)
	_, outs := ops.Scan([]*graph.Node{graph.Zeros(g, shapes.Make(h.DType(), dims[0], 4))}, []*graph.Node{parts}, func(carry, x []*graph.Node) (next, out []*graph.Node) {
		next = []*graph.Node{graph.Tanh(graph.Add(graph.Dot(carry[0], weights).Product(), x[0]))}
		return next, next
	}, ops.Axis(1))
	y := graph.Reshape(outs[0], dims...)
	odd := graph.Equal(graph.ModScalar(b.Steps(), 2), graph.ScalarOne(g, dtypes.Int64))
	y = ops.Cond(odd, func() []*graph.Node { return []*graph.Node{graph.MulScalar(y, 0.5)} }, func() []*graph.Node { return []*graph.Node{y} })[0]
	turns := ops.While(func(v []*graph.Node) *graph.Node {
		return graph.GreaterThan(v[0], graph.Scalar(g, h.DType(), 0.125))
	},
		func(v []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.MulScalar(v[0], 0.5), graph.AddScalar(v[1], 1)}
		},
		graph.StopGradient(graph.ReduceAllMax(graph.Abs(weights))), graph.ScalarZero(g, h.DType()))
	b.Metric("turns", turns[1])
	return y
}

func wave(t *testing.T, n int) *data.Set {
	random := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, 8*n), make([]float32, n)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	for i := range y {
		y[i] = float32(math.Sin(float64(x[8*i] + x[8*i+3])))
	}
	set, err := data.New(data.X(x, n, 8), data.Y(y, n, 1))
	require.NoError(t, err)
	return set
}

func trained(t *testing.T, s strategies.Strategy, steps, block int, order ...data.Option) (logged []float64, values map[string][]float64) {
	state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	names := []string{"loss", "size", "turns"}
	if onGo(s) {
		names = names[:2]
	}
	step := managed.TrainStep(deep)
	defer func() { require.NoError(t, step.Close()) }()
	var batches []data.Batch
	for b, err := range data.Take(wave(t, 256).Batches(32, append(order, data.Shuffle(3))...).From(0), int64(steps)) {
		require.NoError(t, err)
		if batches = append(batches, b); len(batches) < block {
			continue
		}
		_, logs, err := step.StepBlock(context.Background(), state, batches)
		require.NoError(t, err)
		for _, l := range logs {
			for _, name := range names {
				v, err := l.Float(name)
				require.NoError(t, err)
				logged = append(logged, v)
			}
		}
		batches = nil
	}
	require.NoError(t, state.Wait())
	return logged, valuesOf(t, state)
}

func valuesOf(t *testing.T, state *managed.State) map[string][]float64 {
	values := map[string][]float64{}
	for _, name := range state.Names() {
		v, err := state.Value(name)
		require.NoError(t, err)
		values[name] = numbers(t, v)
	}
	return values
}

func resumes(t *testing.T, s strategies.Strategy) {
	run := func(dir string, steps int) map[string][]float64 {
		state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done())))
		require.NoError(t, err)
		step := managed.TrainStep(deep)
		_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, wave(t, 128).Batches(32, data.Shuffle(3)), loop.Until(loop.Steps(steps)),
			checkpoint.Resume(dir, checkpoint.Options{When: loop.AtEnd, ReadBack: true}))
		require.NoError(t, err)
		values := valuesOf(t, state)
		require.NoError(t, errors.Join(step.Close(), state.Close()))
		return values
	}
	broken := folder(t, s)
	half := run(broken, 3)
	whole := run(folder(t, s), 6)
	require.NotEqual(t, half, whole)
	require.Equal(t, whole, run(broken, 6))
}

var lateSteps = []string{"head", "head", "head", "body", "head", "body", "all", "body", "all", "head", "all", "all"}

// late trains parameters that join groups in turn: the head, the body, whose updates average two batches, and a layer
// of the third step. It resumes after each number of steps.
func late(t *testing.T, s strategies.Strategy, until ...int) (losses []float64, values map[string][]float64) {
	hidden := func(b *managed.Builder, name string) *graph.Node {
		return graph.Tanh(layers.Dense(b.Scope().In("%s", name), b.Field("x"), true, 16))
	}
	head := func(b *managed.Builder, h *graph.Node) {
		b.Loss("loss", graph.Square(graph.Sub(layers.Dense(b.Scope().In("head"), h, true, 1), b.Field("y"))))
	}
	few := func(b *managed.Builder) { head(b, hidden(b, "body")) }
	all := func(b *managed.Builder) { head(b, graph.Add(hidden(b, "body"), hidden(b, "extra"))) }
	under := func(scope string) managed.StepOption {
		return managed.TrainOnly(func(name string) bool { return strings.HasPrefix(name, scope) })
	}
	dir := folder(t, s)
	for _, n := range until {
		state, err := managed.New(s, managed.WithOptimizer(optim.New(0.01, optim.Groups(
			optim.Group{Name: "body", Match: optim.Under("/body"), Chain: optim.Chain{optim.Accumulate(2), optim.Adam{}}},
			optim.Group{Name: "rest", Chain: optim.Chain{optim.Adam{}, optim.WeightDecay{Rate: 0.01}}}))))
		require.NoError(t, err)
		var tasks []loop.Task[*managed.State, data.Batch]
		steps := []*managed.Stepper{managed.TrainStep(few, under("/head/")), managed.TrainStep(few, under("/body/")), managed.TrainStep(all)}
		for i, name := range []string{"head", "body", "all"} {
			due := func(_, after loop.Elapsed) bool { return lateSteps[after.Steps-1] == name }
			tasks = append(tasks, loop.On(loop.When(name, due), steps[i]))
		}
		result, err := loop.New(tasks...).Run(t.Context(), state, wave(t, 128).Batches(32, data.Shuffle(3)), loop.Until(loop.Steps(n)),
			checkpoint.Resume(dir, checkpoint.Options{When: loop.AtEnd, ReadBack: true}))
		require.NoError(t, err)
		_, losses, err = result.History.Series("loss")
		require.NoError(t, err)
		values = valuesOf(t, state)
		require.NoError(t, state.Close())
		for _, step := range steps {
			require.NoError(t, step.Close())
		}
	}
	return losses, values
}

func joinLate(t *testing.T, s strategies.Strategy) {
	losses, values := late(t, s, len(lateSteps))
	_, resumed := late(t, s, 3, 6, len(lateSteps))
	require.Equal(t, values, resumed)
	// 7 batches of the body make 3 updates, with one left over.
	require.Equal(t, []float64{1}, values["/optimizers/groups/body/accumulate/body/dense/weights/batches"])
	require.Equal(t, []float64{3}, values["/optimizers/groups/body/accumulate/body/dense/weights/count"])
	for name, updates := range map[string]float64{"head": 9, "extra": 4} {
		require.Equal(t, []float64{updates}, values["/optimizers/parameters/"+name+"/dense/weights/count"], name)
	}
	open := plugintest.CPU
	if onGo(s) {
		open = plugintest.Go
	}
	wantLosses, want := late(t, strategies.Jit(open(t)), len(lateSteps))
	require.InDeltaSlice(t, wantLosses, losses, tolerance)
	require.Len(t, values, len(want))
	for name := range want {
		require.InDeltaSlice(t, want[name], values[name], tolerance, name)
	}
	t.Logf("%d values of parameters that join late at most %g from jit's", len(values), tolerance)
}

func folder(t *testing.T, s strategies.Strategy) string {
	job := s.Runtime().Job()
	if job == nil {
		return t.TempDir()
	}
	name := []int64{0}
	if job.Rank() == 0 {
		name[0] = rand.Int64()
	}
	require.NoError(t, job.Agree(name))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("lazo-strategytest-%d", name[0]))
	if job.Rank() == 0 {
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	}
	return dir
}

func onGo(s strategies.Strategy) bool { return s.Runtime().Plugin().Kind == xla.Go }

func numbers(t *testing.T, v *tensors.Tensor) (all []float64) {
	require.NoError(t, v.ConstFlatData(func(flat any) {
		switch flat := flat.(type) {
		case []float32:
			for _, f := range flat {
				all = append(all, float64(f))
			}
		case []int32:
			for _, n := range flat {
				all = append(all, float64(n))
			}
		case []int64:
			for _, n := range flat {
				all = append(all, float64(n))
			}
		case []uint64: // the random state must be equal
			for _, n := range flat {
				all = append(all, float64(n>>32), float64(n&math.MaxUint32))
			}
		default:
			require.Fail(t, fmt.Sprintf("a value of type %T", flat))
		}
	}))
	return all
}

func agreesWithJit(t *testing.T, s strategies.Strategy) {
	open := plugintest.CPU
	if onGo(s) {
		open = plugintest.Go
	}
	wantLogs, wantValues := trained(t, strategies.Jit(open(t)), comparedSteps, 1)
	logs, values := trained(t, s, comparedSteps, 1)
	worst := 0.0
	compare := func(name string, want, got []float64) {
		require.Len(t, got, len(want), name)
		for i := range want {
			difference := math.Abs(want[i]-got[i]) / max(1, math.Abs(want[i]))
			require.LessOrEqual(t, difference, tolerance, "%s[%d]: expected %g, got %g", name, i, want[i], got[i])
			worst = max(worst, difference)
		}
	}
	compare("logs", wantLogs, logs)
	require.Len(t, values, len(wantValues))
	for name, want := range wantValues {
		compare(name, want, values[name])
	}
	require.Less(t, logs[len(logs)*(comparedSteps-1)/comparedSteps], logs[0], "it learns")
	t.Logf("%d Adam steps with dropout and batch normalisation: logs and %d values at most %.1e from jit's", comparedSteps, len(values), worst)
}

func blocks(t *testing.T, s strategies.Strategy) {
	wantLogs, wantValues := trained(t, s, 24, 1)
	for _, size := range []int{3, 24} {
		logs, values := trained(t, s, 24, size)
		require.Equal(t, wantLogs, logs, "blocks of %d", size)
		require.Equal(t, wantValues, values, "blocks of %d", size)
	}
}

func evaluations(t *testing.T, s strategies.Strategy) {
	state, err := managed.New(s)
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	test := managed.TestStep(func(b *managed.Builder) { b.Mean("mean", b.Field("y")) })
	defer func() { require.NoError(t, test.Close()) }()
	var batches []data.Batch
	for b, err := range wave(t, 128).Batches(32).All() {
		require.NoError(t, err)
		batches = append(batches, b)
	}
	mean := func(batches []data.Batch) (read func() float64) {
		_, logs, err := test.StepBlock(t.Context(), state, batches)
		require.NoError(t, err)
		return func() float64 {
			v, err := logs[len(logs)-1].Float("mean")
			require.NoError(t, err)
			return v
		}
	}
	outside := mean(batches[:1])
	var figures []float64
	for range 2 {
		for _, of := range [][]data.Batch{batches[:2], batches[1:]} {
			end, err := test.BeginEvaluation(t.Context(), state)
			require.NoError(t, err)
			read := mean(of)
			require.NoError(t, end(t.Context()))
			figures = append(figures, read())
		}
	}
	require.Equal(t, figures[:2], figures[2:])
	require.NotEqual(t, figures[0], figures[1])
	require.NotEqual(t, outside(), figures[0])
	require.InDelta(t, figures[0], mean(batches[1:2])(), 1e-6, "the two batches that were made outside")
}

func nothingIsLeft(t *testing.T, s strategies.Strategy) {
	trained(t, s, 10, 5) // fills the cache of xla.KeepPrograms
	before := pjrt.Live()
	trained(t, s, 10, 5)
	after := pjrt.Live()
	require.Equal(t, before.Buffers, after.Buffers)
	require.Equal(t, before.Executables, after.Executables)
	require.Equal(t, before.Events, after.Events)
}
