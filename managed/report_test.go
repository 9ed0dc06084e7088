package managed_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
)

// each makes steps with all batches of a set, one by one or in one block, and gives the logs.
func each(t *testing.T, step *managed.Stepper, state *managed.State, size int, block bool) []loop.Logs {
	t.Helper()
	var batches []data.Batch
	for b, err := range line(t, 64).Batches(size).All() {
		require.NoError(t, err)
		batches = append(batches, b)
	}
	if block {
		_, logs, err := step.StepBlock(t.Context(), state, batches)
		require.NoError(t, err)
		return logs
	}
	var all []loop.Logs
	for _, b := range batches {
		_, logs, err := step.Step(t.Context(), state, b)
		require.NoError(t, err)
		all = append(all, logs)
	}
	return all
}

func float(t *testing.T, l loop.Logs, name string) float64 {
	t.Helper()
	v, err := l.Float(name)
	require.NoError(t, err)
	return v
}

// A tracked metric covers all batches since the last reset, separately in training and test steps.
func TestTrack(t *testing.T) {
	for _, block := range []bool{false, true} {
		build := func(b *managed.Builder) {
			y := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), y)))
			b.Mean("mean_x", b.Field("x"))
			b.Track("largest", metrics.Max(), nil, b.Field("y"))
			b.Track("near", metrics.ConfusionMatrix(2), nil, graph.ConvertDType(graph.GreaterThan(b.Field("x"), graph.ZerosLike(b.Field("x"))), dtypes.Int32),
				graph.ConvertDType(graph.GreaterThan(y, graph.ZerosLike(y)), dtypes.Int32))
		}
		if block { // an array is logged apart, and a step that has one is not made in blocks
			build = func(b *managed.Builder) {
				y := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
				b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), y)))
				b.Mean("mean_x", b.Field("x"))
				b.Track("largest", metrics.Max(), nil, b.Field("y"))
			}
		}
		state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
		step := stepper(t, managed.TrainStep(build, managed.RunningAverages()))
		test := stepper(t, managed.TestStep(build))
		for range 2 { // the second time after a reset
			logs := each(t, step, state, 16, block)
			require.Len(t, logs, 4)
			sum := 0.0
			for i, l := range logs {
				sum += float(t, l, "loss")
				require.InDelta(t, sum/float64(i+1), float(t, l, "avg_loss"), 1e-6, "the mean of the losses so far")
			}
			require.InDelta(t, -1.0/16, float(t, logs[3], "mean_x"), 1e-6)
			require.InDelta(t, 3*7.0/8+1, float(t, logs[3], "largest"), 1e-6)
			e, err := logs[3].Get("mean_x")
			require.NoError(t, err)
			require.Equal(t, loop.Stateful, e.Collection)
			if !block {
				e, err := logs[3].Get("near")
				require.NoError(t, err)
				matrix, err := e.Any()
				require.NoError(t, err)
				flat := tensors.MustCopyFlatData[float64](matrix.(*tensors.Tensor))
				require.Equal(t, 64.0, flat[0]+flat[1]+flat[2]+flat[3], "all examples so far")
			}
			// One test step does not mix with the 4 of training.
			half := line(t, 16)
			for b, err := range half.Batches(16).All() {
				require.NoError(t, err)
				_, l, err := test.Step(t.Context(), state, b)
				require.NoError(t, err)
				require.InDelta(t, -1.0/16, float(t, l, "mean_x"), 1e-6)
			}
			again, err := managed.Reset(t.Context(), state)
			require.NoError(t, err)
			require.Same(t, state, again)
		}
		for _, name := range state.Names() {
			if strings.HasPrefix(name, "/metrics/") {
				v, err := state.Value(name)
				require.NoError(t, err)
				flat := tensors.MustCopyFlatData[float64](v)
				require.NotContains(t, flat, 64.0, "%s was reset", name)
			}
		}
	}
}

// An output stays on the device until it is read, and is freed when its logs are dropped.
func TestOutput(t *testing.T) {
	state := newState(t, plugintest.CPU(t))
	predict := stepper(t, managed.TestStep(func(b *managed.Builder) {
		b.Output("preds", graph.MulScalar(b.Field("x"), 2))
		b.Output("first", graph.Slice(b.Field("x"), graph.AxisElem(0), graph.AxisElem(0)))
	}))
	logs := each(t, predict, state, 16, true)
	require.Len(t, logs, 4)
	for _, l := range logs {
		e, err := l.Get("outputs.preds")
		require.NoError(t, err)
		v, err := e.Any()
		require.NoError(t, err)
		flat := tensors.MustCopyFlatData[float32](v.(*tensors.Tensor))
		require.Len(t, flat, 16)
		require.Equal(t, float32(-2), flat[0])
		_, err = e.Value.Float()
		require.EqualError(t, err, "managed: (Float32)[16, 1] is not a number; its Any returns the tensor")
	}
	logs = nil
	before := pjrt.Live().Buffers
	for range 300 {
		each(t, predict, state, 64, true)
	}
	require.Less(t, pjrt.Live().Buffers-before, int64(1100), "old outputs that nobody has are freed")
	require.NoError(t, state.Close())
}

// Losses and metrics from inside a model, GoMLX's own losses and what its layers do after each step.
func TestAddLoss(t *testing.T) {
	updates := 0
	model := func(b *managed.Builder) {
		scope := b.Scope()
		penalty := func(v *graph.Node) {
			managed.AddLoss("penalty", graph.MulScalar(graph.ReduceAllSum(graph.Square(v)), 0.01))
			managed.AddMetric("norm", graph.ReduceAllSum(graph.Abs(v)))
		}
		h := layers.Dense(scope.In("a"), b.Field("x"), true, 4)
		penalty(h)
		penalty(h)
		scope = scope.In("b")
		scope.SetParam(regularizer.ParamL2, 0.5)
		y := layers.Dense(scope, h, true, 1)
		train.AddPerStepUpdateGraphFn(scope.In("limit"), b.Graph(), func(*model.Scope, *graph.Graph) { updates++ })
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), y)))
	}
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	l := each(t, stepper(t, managed.TrainStep(model)), state, 64, false)[0]
	require.Equal(t, float(t, l, "penalty"), float(t, l, "penalty_1"))
	require.Equal(t, float(t, l, "norm"), float(t, l, "norm_1"))
	require.Positive(t, float(t, l, "aux_loss"), "GoMLX's regularizer")
	require.Equal(t, 1, updates, "GoMLX's update after each step")

	defer func() { require.ErrorContains(t, recover().(error), "works only inside the build function") }()
	r := plugintest.CPU(t)
	g := graph.NewGraph(r, "outside")
	managed.AddLoss("x", graph.Scalar(g, dtypes.Float32, 1))
}

// A generator and a discriminator in one state, each with an optimizer and a step of its own.
func TestOnly(t *testing.T) {
	in := func(scope string) func(string) bool {
		return func(name string) bool { return strings.HasPrefix(name, "/"+scope+"/") }
	}
	model := func(b *managed.Builder) {
		h := layers.Dense(b.Scope().In("first"), b.Field("x"), true, 4)
		y := layers.Dense(b.Scope().In("second"), h, true, 1)
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), y)))
	}
	state := newState(t, plugintest.CPU(t))
	first := stepper(t, managed.TrainStep(model, managed.TrainOnly(in("first")), managed.WithStepOptimizer("adam", optim.GoMLX(optimizer.Adam().LearningRate(0.1).Done()))))
	second := stepper(t, managed.TrainStep(model, managed.TrainOnly(in("second")), managed.WithStepOptimizer("sgd", sgd())))
	values := func() map[string][]byte { return bits(t, state) }
	each(t, first, state, 64, false)
	each(t, second, state, 64, false)
	for name, step := range map[string]*managed.Stepper{"first": first, "second": second} {
		before := values()
		each(t, step, state, 64, false)
		for of, v := range values() {
			changed := string(v) != string(before[of])
			switch {
			case strings.HasPrefix(of, "/"+name+"/"):
				require.True(t, changed, "%s is trained by the step %s", of, name)
			case strings.HasPrefix(of, "/first/") || strings.HasPrefix(of, "/second/"):
				require.False(t, changed, "%s is not trained by the step %s", of, name)
			}
		}
	}
	_, kept := values()["/AdamOptimizer/first/dense/weights_1st_moment"]
	require.True(t, kept, "%v", state.Names())

	none := stepper(t, managed.TrainStep(model, managed.TrainOnly(in("third")), managed.WithStepOptimizer("sgd", sgd())))
	_, _, err := none.Step(t.Context(), state, firstBatch(t))
	require.ErrorContains(t, err, "no trainable variable")
	before := values()
	each(t, first, state, 64, false)
	require.NotEqual(t, before["/first/dense/weights"], values()["/first/dense/weights"], "what failed left nothing behind")
}
