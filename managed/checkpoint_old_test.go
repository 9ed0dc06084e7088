package managed_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla/export"
)

// oldNetwork is that of testdata/gomlx-v0.26.0/save.go.
func oldNetwork(scope *model.Scope, x *graph.Node) *graph.Node {
	h := norm.BatchNorm(scope.In("norm"), x, -1).Done()
	h = graph.Reshape(graph.Tanh(layers.Dense(scope.In("first"), h, true, 2, 4)), -1, 8)
	h = layers.Dropout(scope.In("drop"), h, graph.Scalar(x.Graph(), h.DType(), 0.1))
	return layers.Dense(scope.In("last"), h, true, 1)
}

func oldWhole(b *managed.Builder) {
	y := oldNetwork(b.Scope(), b.Field("x"))
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), y)))
	b.Metric("steps", b.Steps())
	b.Mean("mean", y)
}

func oldPart(name string, rule *optim.Optimizer) *managed.Stepper {
	return managed.TrainStep(func(b *managed.Builder) {
		sum := graph.Add(oldNetwork(b.Scope().In("one"), b.Field("x")), oldNetwork(b.Scope().In("two"), b.Field("x")))
		b.Loss(name+"_loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), sum)))
		b.Metric(name+"_steps", b.Steps())
	}, managed.WithStepOptimizer(name, rule), managed.TrainOnly(func(v string) bool { return strings.HasPrefix(v, "/"+name+"/") }))
}

func oldAdam() *optim.Optimizer { return optim.GoMLX(optimizer.Adam().LearningRate(0.02).Done()) }

type oldRun struct {
	optimizer *optim.Optimizer
	steps     []*managed.Stepper
	weights   string
}

// oldRuns are the runs that lazo saved before GoMLX v0.28.
func oldRuns(t *testing.T) map[string]oldRun {
	chain := optim.New(0.02, optim.Clip{GlobalNorm: 1}, optim.Adam{}, optim.WeightDecay{Rate: 0.01},
		optim.ScaleBySchedule(optim.Cosine(1, 0.5, 40)), optim.Average{Decay: 0.9})
	whole := []*managed.Stepper{stepper(t, managed.TrainStep(oldWhole))}
	return map[string]oldRun{
		"adam":  {oldAdam(), whole, "/last/dense/weights"},
		"chain": {chain, whole, "/last/dense/weights"},
		"two": {nil, []*managed.Stepper{stepper(t, oldPart("one", oldAdam())),
			stepper(t, oldPart("two", optim.New(0.02, optim.Adam{}, optim.Momentum{Decay: 0.5})))}, "/one/last/dense/weights"},
	}
}

// A run saved by lazo before GoMLX v0.28 continues as it did then, and reports that the version of lazo differs.
func TestF11_runsOfBeforeGoMLX28GoOn(t *testing.T) {
	r, worst := plugintest.CPU(t), 0.0
	for name, run := range oldRuns(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "gomlx-v0.26.0", name))))
			f, err := checkpoint.Open(dir, checkpoint.Options{Overwrite: true})
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			text, err := os.ReadFile(filepath.Join("testdata", "gomlx-v0.26.0", name+".json"))
			require.NoError(t, err)
			var want map[string][]float64
			require.NoError(t, json.Unmarshal(text, &want))
			training := loop.New(loop.On(loop.EachStep, run.steps[0]))
			if len(run.steps) == 2 {
				training = loop.New(loop.On(loop.EachStep, run.steps[0]), loop.On(loop.EachStep, run.steps[1]))
			}
			for _, made := range []bool{false, true} { // whether the variables are there before
				options := []managed.Option{managed.WithSeed(11)}
				if run.optimizer != nil {
					options = append(options, managed.WithOptimizer(run.optimizer))
				}
				state := newState(t, r, options...)
				if made {
					_, err := training.Run(t.Context(), state, line(t, 80).Batches(16), loop.Until(loop.Steps(2)))
					require.NoError(t, err)
				}
				var told []string
				batches := line(t, 80).Batches(16, data.Shuffle(3))
				tell := func(d checkpoint.Difference) error { told = append(told, d.What); return nil }
				result, err := training.Run(t.Context(), state, batches, loop.Until(loop.Steps(45)),
					f.Resume(checkpoint.Options{When: loop.Never, At: new(checkpoint.Step(20)), Changed: tell}))
				require.NoError(t, err)
				require.Contains(t, told, "lazo")
				for series, want := range want {
					var got []float64
					if series == "weights" {
						for _, x := range floats(t, state, run.weights) {
							got = append(got, float64(x))
						}
					} else {
						_, got, err = result.History.Series(series)
						require.NoError(t, err)
						require.Len(t, got, 45, "with the rows of before")
						got = got[20:]
					}
					require.Len(t, got, len(want), series)
					for i := range want {
						if strings.HasSuffix(series, "_steps") { // which those versions did not count
							want[i] = float64(2*(20+i)) + map[string]float64{"two_steps": 1}[series]
						}
						apart := math.Abs(got[i]-want[i]) / max(math.Abs(want[i]), 1e-2)
						require.Less(t, apart, 1e-5, "%s, step %d: %g, then %g", series, 21+i, got[i], want[i])
						worst = max(worst, apart)
					}
				}
			}
		})
	}
	t.Logf("F11: 3 runs saved before GoMLX v0.28, resumed with it: 25 steps within %.1e of how they went on then", worst)
}

// Values of before GoMLX v0.28 that are given by name are taken too, and those of other things are not.
func TestWithValues_ofBeforeGoMLX28(t *testing.T) {
	r, batch := plugintest.CPU(t), first(t, line(t, 16).Batches(16))
	build := func(b *managed.Builder) {
		h := layers.Dense(b.Scope().In("h"), b.Field("x"), true, 2, 3)
		own := b.Scope().In("own").VariableWithValue("step", float32(7)).SetTrainable(false).NodeValue(b.Graph())
		b.Loss("loss", graph.Mul(graph.ReduceAllMean(h), own))
	}
	given := map[string]*tensors.Tensor{
		"/h/dense/weights":           tensors.FromValue([][][]float32{{{1, 2, 3}, {4, 5, 6}}}),
		"/h/dense/biases":            tensors.FromValue([][]float32{{1, 2, 3}, {4, 5, 6}}),
		"/AdamOptimizer/global_step": tensors.FromScalar(int64(41)),
		"/own/global_step":           tensors.FromScalar(int64(41)),
	}
	state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0).Done())), managed.WithValues(given))
	one(t, stepper(t, managed.TrainStep(build)), state, batch)
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, floats(t, state, "/h/dense/weights"))
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, floats(t, state, "/h/dense/biases"))
	require.Equal(t, []float32{42}, floats(t, state, "/AdamOptimizer/step"))
	require.Equal(t, []float32{7}, floats(t, state, "/own/step"), "no optimizer's")

	wrong := map[string]*tensors.Tensor{"/h/dense/weights": tensors.FromValue([][][]float32{{{1, 2}, {3, 4}}}), "/h/dense/biases": given["/h/dense/biases"]}
	refused := newState(t, r, managed.WithOptimizer(sgd()), managed.WithValues(wrong))
	_, _, err := stepper(t, managed.TrainStep(build)).Step(t.Context(), refused, batch)
	require.ErrorContains(t, err, "the given values do not fit the model: ")
	require.ErrorContains(t, err, "/h/dense/weights is (Float32)[1, 2, 2], expected (Float32)[1, 6]")
}

// Given values of attention that was scaled twice compute the same: queries are divided by the root of a head's width,
// and Adam's moments of them are multiplied. A schedule's count of steps continues.
func TestWithValues_attentionOfBeforeGoMLX28(t *testing.T) {
	r, batch := plugintest.CPU(t), first(t, line(t, 16).Batches(16))
	build := func(b *managed.Builder) {
		attention := b.Scope().In("MultiHeadAttention")
		query := layers.Dense(attention.In("query"), b.Field("x"), true, 2, 3)
		key := layers.Dense(attention.In("key"), b.Field("x"), true, 2, 3)
		step := b.Scope().At("optimizers").At("cosine_schedule").VariableWithValue("step", float32(0)).SetTrainable(false)
		none := graph.MulScalar(graph.ReduceAllMean(graph.Add(query, key)), 0)
		b.Loss("loss", graph.Add(none, graph.StopGradient(step.NodeValue(b.Graph()))))
	}
	six := tensors.FromValue([][][]float32{{{1, 2, 3}, {4, 5, 6}}})
	given := map[string]*tensors.Tensor{"/optimizers/cosine_schedule/global_step": tensors.FromScalar(int64(41))}
	for _, part := range []string{"query", "key"} {
		path := "/MultiHeadAttention/" + part + "/dense/weights"
		for _, name := range []string{path, "/AdamOptimizer" + path + "_1st_moment", "/AdamOptimizer" + path + "_2nd_moment"} {
			given[name] = six
		}
		given["/MultiHeadAttention/"+part+"/dense/biases"] = tensors.FromValue([][]float32{{1, 2, 3}, {4, 5, 6}})
	}
	state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0).Done())), managed.WithValues(given))
	one(t, stepper(t, managed.TrainStep(build)), state, batch)
	root := math.Sqrt(3)
	for name, by := range map[string]float64{
		"/MultiHeadAttention/query/dense/weights": 1 / root, "/MultiHeadAttention/query/dense/biases": 1 / root,
		"/MultiHeadAttention/key/dense/weights": 1, "/MultiHeadAttention/key/dense/biases": 1,
		// A step without a gradient leaves 0.9 and 0.999 of Adam's moments.
		"/AdamOptimizer/MultiHeadAttention/query/dense/weights_1st_moment": 0.9 * root, "/AdamOptimizer/MultiHeadAttention/query/dense/weights_2nd_moment": 0.999 * 3,
		"/AdamOptimizer/MultiHeadAttention/key/dense/weights_1st_moment": 0.9, "/AdamOptimizer/MultiHeadAttention/key/dense/weights_2nd_moment": 0.999,
		"/optimizers/cosine_schedule/step": 41,
	} {
		for i, got := range floats(t, state, name) {
			require.InEpsilon(t, float64(i+1)*by, got, 1e-6, name)
		}
	}
	require.InDelta(t, 1, six.Value().([][][]float32)[0][0][0], 0, "what was given is as it was")
}

// Tensors of before GoMLX v0.28 are taken by Transfer too.
func TestTransfer_ofBeforeGoMLX28(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "gomlx-v0.26.0", "adam"))))
	f, err := checkpoint.Open(dir, checkpoint.Options{Overwrite: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	r, run := plugintest.CPU(t), oldRuns(t)["adam"]
	restored, transferred := newState(t, r, managed.WithOptimizer(run.optimizer)), newState(t, r, managed.WithOptimizer(run.optimizer))
	require.NoError(t, restored.Restore(t.Context(), c))
	require.NoError(t, transferred.Transfer(t.Context(), c, func(variable string) string { return variable }))
	for _, state := range []*managed.State{restored, transferred} {
		one(t, run.steps[0], state, first(t, line(t, 16).Batches(16)))
	}
	require.Equal(t, bits(t, restored), bits(t, transferred))
	require.Equal(t, []float32{21}, floats(t, transferred, "/AdamOptimizer/step"))
}

// The weights of a step that lazo exported before GoMLX v0.28 go into a state by their names. That the step itself
// runs is tested in xla/export.
func TestExport_ofBeforeGoMLX28(t *testing.T) {
	p, err := export.Load(filepath.Join("testdata", "gomlx-v0.26.0", "export"))
	require.NoError(t, err)
	r := plugintest.CPU(t)
	run := oldRuns(t)["adam"]
	state := newState(t, r, managed.WithOptimizer(run.optimizer), managed.WithValues(p.Weights))
	x, err := managed.ArrayOf(p.Example.Inputs["x"])
	require.NoError(t, err)
	y, err := managed.ArrayOf(p.Example.Inputs["y"])
	require.NoError(t, err)
	one(t, run.steps[0], state, batchOf(data.Field{Name: "x", Array: x}, data.Field{Name: "y", Array: y}))
	for _, name := range []string{"/norm/batch_normalization/scale", "/last/dense/weights"} {
		want := tensors.MustCopyFlatData[float32](p.Example.Outputs[name])
		require.InDeltaSlice(t, want, floats(t, state, name), 1e-6, name)
	}
}
