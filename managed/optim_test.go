package managed_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// Rates from a schedule, in blocks of steps, and other ones set by the host in between: one program.
func TestOptim_schedulesAndRatesCompileNothing(t *testing.T) {
	schedule := optim.Linear(0, 1, 30).Then(30, optim.Cosine(1, 0, 170))
	optimizer := optim.New(0.1, optim.ScaleBySchedule(schedule))
	state := newState(t, plugintest.Uncached(t), managed.WithOptimizer(optimizer))
	step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		predicted := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
		loss := graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted))
		b.Loss("loss", loss)
		b.Metric("rate", optimizer.Rate(b.Scope(), loss))
	}))
	var batches []data.Batch
	for b, err := range data.Take(line(t, 64).Batches(16).From(0), 200) {
		require.NoError(t, err)
		batches = append(batches, b)
	}
	base, changes := 0.1, 0
	compiling := step.CompileTime()
	for n := 0; n < 200; n += 10 {
		if n > 0 {
			base = 0.1 / float64(n)
			require.NoError(t, state.SetLearningRate(base))
			changes++
		}
		_, logs, err := step.StepBlock(t.Context(), state, batches[n:n+10])
		require.NoError(t, err)
		for i, l := range logs {
			require.InDelta(t, base*schedule.At(int64(n+i)), float(t, l, "rate"), 1e-7, "step %d", n+i)
		}
		if n == 0 {
			compiling = step.CompileTime()
		}
	}
	require.Len(t, step.StableHLO(), 1)
	require.Equal(t, compiling, step.CompileTime())
	t.Logf("200 steps of a schedule, %d rates set: 1 program, 0 compilations after the first block", changes)
}

// Four batches of 16, each divided over four devices, make the update of one batch of 64 on one device.
func TestOptim_accumulationUnderDataParallel(t *testing.T) {
	const updates = 25
	set := line(t, 64)
	run := func(s strategies.Strategy, size, steps int, chain ...optim.Transformation) *managed.State {
		state, err := managed.New(s, managed.WithOptimizer(optim.New(0.05, chain...)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, state.Close()) })
		step := stepper(t, managed.TrainStep(regression))
		learn(t, state, step, set.Batches(size), steps)
		return state
	}
	four, err := strategies.DataParallel(plugintest.Devices(t, 4), strategies.Parallel{})
	require.NoError(t, err)
	tail := []optim.Transformation{optim.Clip{GlobalNorm: 2}, optim.Adam{}, optim.ScaleBySchedule(optim.Cosine(1, 0.1, updates))}
	big := run(strategies.Jit(plugintest.CPU(t)), 64, updates, tail...)
	small := run(four, 16, 4*updates, append([]optim.Transformation{optim.Accumulate(4)}, tail...)...)
	worst := 0.0
	for _, name := range []string{"/dense/dense/weights", "/dense/dense/biases"} {
		want, got := floats(t, big, name), floats(t, small, name)
		for i := range want {
			worst = max(worst, math.Abs(float64(want[i]-got[i])))
		}
	}
	require.LessOrEqual(t, worst, 1e-5)
	t.Logf("%d updates of 4 batches of 16 on 4 devices: at most %.1e from those of 64 on one", updates, worst)
}

// A model with something of each kind for groups and masks.
func branches(b *managed.Builder) {
	h := layers.Dense(b.Scope().In("encoder"), b.Field("x"), true, 6)
	h = graph.Tanh(layers.Dense(b.Scope().In("hidden"), h, true, 6))
	h = layers.Dropout(b.Scope().In("drop"), h, graph.Scalar(b.Graph(), h.DType(), 0.1))
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.ToOutputType(b.Field("y")), b.ToOutputType(layers.Dense(b.Scope().In("out"), h, true, 1)))))
}

// Whatever variables the optimizer has, a run continued from a snapshot is bit-identical, in blocks; the snapshot may
// be in the middle of an accumulation.
func TestOptim_goesOnFromASnapshotWithEqualBits(t *testing.T) {
	r := plugintest.CPU(t)
	scale := optim.LossScale{Start: 64, Every: 20}
	for _, row := range []struct {
		name   string
		frozen string
		policy optim.Policy
		chain  []optim.Transformation
	}{
		{"accumulation in a schedule", "", float32s, []optim.Transformation{optim.Accumulate(7), optim.Clip{GlobalNorm: 0.5}, optim.Adam{}, optim.ScaleBySchedule(optim.OneCycle(1, 30))}},
		{"groups and frozen parameters", "/encoder/", float32s, []optim.Transformation{optim.Frozen(optim.Under("/encoder")), optim.Groups(
			optim.Group{Name: "matrices", Match: optim.Matrices, Chain: optim.Chain{optim.Muon{}}}, optim.Group{Name: "rest", Chain: optim.Chain{optim.Lion{}, optim.Scale(0.1)}})}},
		{"averages", "", float32s, []optim.Transformation{optim.SkipNonFinite(), optim.Clip{Value: 0.1}, optim.Momentum{Decay: 0.9}, optim.Average{Decay: 0.95}}},
		{"bfloat16", "/encoder/", optim.MixedBFloat16(), []optim.Transformation{optim.Frozen(optim.Under("/encoder")), optim.Adam{}, optim.WeightDecay{Rate: 0.01, Match: optim.RankFrom(2)}}},
		{"float16", "", optim.MixedFloat16(), []optim.Transformation{scale, optim.Adafactor{}, optim.Average{Decay: 0.9}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			build := branches
			if row.policy.NeedsLossScale() {
				build = func(b *managed.Builder) {
					y := b.ToOutputType(layers.Dense(b.Scope().In("encoder"), b.Field("x"), true, 1))
					b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.ToOutputType(b.Field("y")), y)))
				}
			}
			state := newState(t, r, managed.WithOptimizer(optim.New(0.02, row.chain...)), managed.WithPolicy(row.policy))
			step := stepper(t, managed.TrainStep(build))
			ahead := func(from, n int) []float64 {
				return learn(t, state, step, line(t, 64).Batches(16, data.Shuffle(3)), n)
			}
			ahead(0, 1)
			began := bits(t, state)
			ahead(1, 49)
			snapshot := take(t, state)
			losses := ahead(50, 70)
			want := bits(t, state)
			require.NoError(t, snapshot.Restore(t.Context()))
			require.Equal(t, losses, ahead(50, 70))
			require.Equal(t, want, bits(t, state))
			require.NoError(t, snapshot.Close())
			require.Len(t, step.StableHLO(), 1)
			frozen := 0
			for name := range want {
				if row.frozen != "" && strings.HasPrefix(name, row.frozen) {
					require.Equal(t, began[name], want[name], name)
					frozen++
				}
			}
			require.Equal(t, row.frozen != "", frozen > 0)
			t.Logf("resumed at step 50 of 120: 0 of %d values differ, %d frozen ones as at first", len(want), frozen)
		})
	}
}

// A test step on the averages of the parameters gives what the host's own averages give.
func TestOptim_averageInATestStep(t *testing.T) {
	const decay = 0.8
	average := optim.Average{Decay: decay}
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.New(0.1, optim.Clip{GlobalNorm: 1}, average)))
	step := stepper(t, managed.TrainStep(slope))
	test := stepper(t, managed.TestStep(func(b *managed.Builder) { average.In(b.Scope(), b.Graph(), func() { slope(b) }) }))
	_, _, err := test.Step(t.Context(), state, ones(t, 2))
	require.ErrorContains(t, err, "there are no averaged parameters")
	sum, weight := 0.0, 0.0
	for n := range 20 {
		last := 1.0
		if n > 0 {
			last = float64(floats(t, state, "/w")[0])
		}
		one(t, step, state, ones(t, 2))
		w := float64(floats(t, state, "/w")[0])
		require.LessOrEqual(t, math.Abs(last-w), 0.1*(1+1e-5), "the gradient is clipped to 1")
		sum, weight = decay*sum+(1-decay)*w, decay*weight+1-decay
		_, logs, err := test.Step(t.Context(), state, ones(t, 2))
		require.NoError(t, err)
		require.InDelta(t, sum/weight*sum/weight, float(t, logs, "loss"), 1e-6, "step %d", n)
		require.Equal(t, w, float64(floats(t, state, "/w")[0]), "the state has its own values")
	}
	require.Len(t, test.StableHLO(), 1)
}
