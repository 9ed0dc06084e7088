package managed_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/strategies"
)

// array is an array that was logged.
func array(t *testing.T, l loop.Logs, name string) *tensors.Tensor {
	t.Helper()
	e, err := l.Get(name)
	require.NoError(t, err)
	v, err := e.Any()
	require.NoError(t, err)
	return v.(*tensors.Tensor)
}

// on calls each with a state on one device and with one on four.
func on(t *testing.T, each func(t *testing.T, state *managed.State), options ...managed.Option) {
	r := plugintest.Devices(t, 4)
	for _, s := range []strategies.Strategy{strategies.Jit(r), onFour(t, r, strategies.Parallel{})} {
		t.Run(s.String(), func(t *testing.T) {
			state, err := managed.New(s, options...)
			require.NoError(t, err)
			defer func() { require.NoError(t, state.Close()) }()
			each(t, state)
		})
	}
}

// B30: a train step under data parallel, in place, of a state with random numbers and a field of its own that the
// step's function changes, with a batch of nothing: one call succeeds.
func TestB30_aStepOfNoBatch(t *testing.T) {
	on(t, func(t *testing.T, state *managed.State) {
		step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
			g, scope := b.Graph(), b.Scope()
			own := scope.VariableWithValue("own", []int32{7, 8}).SetTrainable(false)
			own.SetNodeValue(graph.AddScalar(own.NodeValue(g), 1))
			w := scope.VariableWithValue("w", float32(2)).NodeValue(g)
			noise := graph.ReduceAllMean(scope.RandomUniform(g, shapeOf(8)))
			b.Loss("loss", graph.Mul(w, graph.AddScalar(noise, 1)))
		}))
		_, logs, err := step.Step(t.Context(), state, data.Batch{})
		require.NoError(t, err)
		require.Greater(t, float(t, logs, "loss"), 2.0)
		require.Less(t, floats(t, state, "/w")[0], float32(1.9))
		own, err := state.Value("/own")
		require.NoError(t, err)
		require.Equal(t, []int32{8, 9}, tensors.MustCopyFlatData[int32](own))
		random := bits(t, state)["/#rngState"]
		_, _, err = step.Step(t.Context(), state, data.Batch{})
		require.NoError(t, err)
		require.NotEqual(t, random, bits(t, state)["/#rngState"], "the random state went on")
		t.Logf("B30: %v: two steps of no batch", state.Strategy())
	}, managed.WithOptimizer(sgd()))
}

// The step differentiates the sum of all losses, also those from within the model; metrics have no gradient.
func TestTrainStep_sumsTheLosses(t *testing.T) {
	on(t, func(t *testing.T, state *managed.State) {
		step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
			w := b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
			managed.AddLoss("inner", graph.MulScalar(w, 4))
			b.Loss("first", graph.MulScalar(w, 1))
			b.Loss("second", graph.MulScalar(w, 2))
			b.Metric("no loss", graph.MulScalar(w, 100))
			b.Mean("none either", graph.MulScalar(w, 100))
		}))
		_, _, err := step.Step(t.Context(), state, firstBatch(t))
		require.NoError(t, err)
		require.InDelta(t, 1-0.1*(1+2+4), floats(t, state, "/w")[0], 1e-6)
	}, managed.WithOptimizer(sgd()))
}

// A metric of several values is logged under the name of each, numbers as numbers and arrays as arrays.
func TestTrack_severalValues(t *testing.T) {
	on(t, func(t *testing.T, state *managed.State) {
		step := stepper(t, managed.TestStep(func(b *managed.Builder) {
			above := func(x *graph.Node, limit float64) *graph.Node {
				x = graph.Squeeze(x, -1)
				return graph.ConvertDType(graph.GreaterThan(x, graph.MulScalar(graph.OnesLike(x), limit)), dtypes.Int32)
			}
			labels, predicted := above(b.Field("x"), 0), above(b.Field("x"), -0.5)
			b.Track("macro", metrics.ClassScores(2, metrics.Macro), nil, labels, predicted)
			b.Track("each", metrics.ClassScores(2, metrics.PerClass), nil, labels, predicted)
		}))
		// x goes from -1 to 0.875 in 16: 7 above 0, 11 above -0.5.
		var last loop.Logs
		for range 2 { // what is gathered over two batches of the same examples is the same
			_, logs, err := step.Step(t.Context(), state, firstBatch(t))
			require.NoError(t, err)
			last = logs
		}
		precision, recall := []float64{1, 7. / 11}, []float64{5. / 9, 1}
		require.InDelta(t, (precision[0]+precision[1])/2, float(t, last, "macro/precision"), 1e-6)
		require.InDelta(t, (recall[0]+recall[1])/2, float(t, last, "macro/recall"), 1e-6)
		require.InDeltaSlice(t, precision, tensors.MustCopyFlatData[float64](array(t, last, "each/precision")), 1e-6)
		require.InDeltaSlice(t, recall, tensors.MustCopyFlatData[float64](array(t, last, "each/recall")), 1e-6)
		_, err := last.Get("macro")
		require.ErrorIs(t, err, loop.ErrNoEntry)
	})
}

// Metrics and outputs cover the examples of all devices, in their order.
func TestOutput_ofAllDevices(t *testing.T) {
	on(t, func(t *testing.T, state *managed.State) {
		step := stepper(t, managed.TestStep(func(b *managed.Builder) {
			b.Output("double", graph.MulScalar(b.Field("x"), 2))
			b.Track("largest", metrics.Max(), nil, b.Field("x"))
			b.Track("last", metrics.Last(), nil, b.Field("x"))
			b.Mean("mean", b.Field("x"))
		}))
		_, logs, err := step.Step(t.Context(), state, firstBatch(t))
		require.NoError(t, err)
		got := array(t, logs, "outputs.double")
		require.Equal(t, []int{16, 1}, got.Shape().Dimensions)
		for i, v := range tensors.MustCopyFlatData[float32](got) {
			require.Equal(t, 2*(float32(i)/8-1), v)
		}
		require.Equal(t, 0.875, float(t, logs, "largest"))
		require.InDelta(t, -1.0/16, float(t, logs, "mean"), 1e-6)
		require.InDelta(t, -1.0/16, float(t, logs, "last"), 1e-6, "of the last batch, the mean over the devices")
	})
}

// One step serves states on several strategies, and has a program for each: a second round compiles nothing.
func TestStepper_onSeveralStrategies(t *testing.T) {
	r := plugintest.Devices(t, 4)
	step := stepper(t, managed.TrainStep(regression))
	var states []*managed.State
	for _, s := range []strategies.Strategy{strategies.Jit(r), onFour(t, r, strategies.Parallel{}), onFour(t, r, strategies.Parallel{Devices: 2})} {
		state, err := managed.New(s, managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		states = append(states, state)
	}
	for range 3 {
		for _, state := range states {
			_, _, err := step.Step(t.Context(), state, firstBatch(t))
			require.NoError(t, err)
		}
		programs := step.StableHLO()
		require.Len(t, programs, len(states))
		require.NotEqual(t, programs[0], programs[1])
		require.NotEqual(t, programs[1], programs[2])
	}
	for _, state := range states[1:] {
		require.InDeltaSlice(t, floats(t, states[0], "/dense/dense/weights"), floats(t, state, "/dense/dense/weights"), 1e-6)
	}
}

// Names are the model's: a path, if it likes, and the third of a name is _2.
func TestAddLoss_names(t *testing.T) {
	state := newState(t, plugintest.CPU(t))
	step := stepper(t, managed.TestStep(func(b *managed.Builder) {
		block := b.Scope().In("block")
		for i, name := range []string{"a", "b"} {
			scope := block.In("%s", name)
			v := graph.Scalar(b.Graph(), dtypes.Float32, float64(i+1))
			managed.AddLoss(strings.TrimPrefix(scope.Scope(), "/")+"/penalty", v)
			managed.AddMetric("size", v)
		}
		managed.AddMetric("size", graph.Scalar(b.Graph(), dtypes.Float32, 3))
	}, managed.RunningAverages()))
	_, logs, err := step.Step(t.Context(), state, firstBatch(t))
	require.NoError(t, err)
	for name, want := range map[string]float64{"block/a/penalty": 1, "block/b/penalty": 2, "avg_block/b/penalty": 2, "size": 1, "size_1": 2, "size_2": 3} {
		require.Equal(t, want, float(t, logs, name), name)
	}
}

// B79: the batch is sharded over the data axis; the state is replicated, or sharded by a rule.
func TestB79_howValuesLie(t *testing.T) {
	r := plugintest.Devices(t, 4)
	lies := regexp.MustCompile(`tensor<([0-9x]+)xf32> \{sdy.sharding = #sdy.sharding<@mesh, \[([^]]*)\]>`)
	for _, row := range []struct {
		name    string
		options strategies.Parallel
		weights string // of a layer of 4 units
	}{
		{"data parallel", strategies.Parallel{}, `1x4: {}, {}`},
		{"by rule", strategies.Parallel{Shard: strategies.FullyShard(4, 4)}, `1x4: {}, {"data"}`},
	} {
		state := parallelState(t, r, row.options)
		step := stepper(t, managed.TrainStep(hiddenFour))
		_, _, err := step.Step(t.Context(), state, firstBatch(t))
		require.NoError(t, err)
		var found []string
		for _, m := range lies.FindAllStringSubmatch(step.StableHLO()[0], -1) {
			found = append(found, m[1]+": "+m[2])
		}
		require.Contains(t, found, `16x1: {"data"}, {}`, row.name)
		require.Contains(t, found, row.weights, row.name)
		require.Contains(t, found, `1: {}`, row.name, "what cannot be divided stays whole")
		t.Logf("B79: %s: %v", row.name, found)
	}
}

// B85: a train step changes the parameters and a test step does not; both give the logits of the whole batch.
func TestB85_trainingChangesParameters(t *testing.T) {
	on(t, func(t *testing.T, state *managed.State) {
		build := func(b *managed.Builder) {
			logits := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 3)
			b.Output("logits", logits)
			b.Loss("loss", graph.Square(logits))
		}
		train, test := stepper(t, managed.TrainStep(build)), stepper(t, managed.TestStep(build))
		for _, step := range []*managed.Stepper{test, train, test} {
			var before []float32
			if len(state.Names()) > 0 {
				before = floats(t, state, "/dense/dense/weights")
			}
			_, logs, err := step.Step(t.Context(), state, firstBatch(t))
			require.NoError(t, err)
			require.Equal(t, []int{16, 3}, array(t, logs, "logits").Shape().Dimensions)
			if before != nil {
				require.Equal(t, step == train, !slices.Equal(before, floats(t, state, "/dense/dense/weights")))
			}
		}
		t.Logf("B85: %v", state.Strategy())
	}, managed.WithOptimizer(sgd()))
}
