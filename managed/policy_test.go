package managed_test

import (
	"bytes"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// perceptron has two layers.
func perceptron(b *managed.Builder) *graph.Node {
	x := graph.Reshape(b.Field("x"), -1, 64)
	x = activation.Relu(layers.Dense(b.Scope().In("hidden"), x, true, 32))
	return b.ToOutputType(layers.Dense(b.Scope().In("logits"), x, true, 10))
}

func classifier(b *managed.Builder) {
	b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), perceptron(b))))
}

func digits(t *testing.T) *data.Set {
	t.Helper()
	set, _, err := data.Digits()
	require.NoError(t, err)
	return set
}

// learn makes steps in blocks and gives the losses.
func learn(t *testing.T, state *managed.State, step *managed.Stepper, batches loop.Source[data.Batch], n int) []float64 {
	t.Helper()
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, batches, loop.Until(loop.Steps(int64(n))))
	require.NoError(t, err)
	_, losses, err := result.History.Series("loss")
	require.NoError(t, err)
	return losses
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

//lazo:norace
func TestWithPolicy_learnsAsInFloat32(t *testing.T) {
	r := plugintest.CPU(t)
	scale := optim.LossScale{}
	var want float64
	for _, row := range []struct {
		name   string
		policy optim.Policy
		dots   string
		near   float64 // of the mean loss of the last 50 steps, relative
	}{
		{"float32", float32s, "f32", 0},
		{"bfloat16", optim.MixedBFloat16(), "bf16", 0.02},
		{"float16", optim.MixedFloat16(), "f16", 0.005},
	} {
		t.Run(row.name, func(t *testing.T) {
			chain := []optim.Transformation{optim.Adam{}}
			build := classifier
			if row.policy.NeedsLossScale() {
				chain = []optim.Transformation{scale, optim.Adam{}}
				build = func(b *managed.Builder) {
					b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), perceptron(b))))
				}
			}
			state := newState(t, r, managed.WithOptimizer(optim.New(3e-3, chain...)), managed.WithPolicy(row.policy))
			step := stepper(t, managed.TrainStep(build))
			losses := learn(t, state, step, digits(t).Batches(32, data.Shuffle(0)), 300)
			last := mean(losses[250:])
			if row.near == 0 {
				want = last
				require.Less(t, last, losses[0]/8)
			}
			require.InEpsilon(t, want, last, row.near+1e-12)
			for _, name := range state.Names() {
				v, err := state.Value(name)
				require.NoError(t, err)
				require.NotContains(t, []dtypes.DType{dtypes.BFloat16, dtypes.Float16}, v.DType(), name)
			}
			dots := regexp.MustCompile(`(?s)dot_general.*?\} : \(tensor<[0-9x]*x(b?f\d+)>, tensor<[0-9x]*x(b?f\d+)>\) -> tensor<[0-9x]*x(b?f\d+)>`).
				FindAllStringSubmatch(step.StableHLO()[0], -1)
			require.Len(t, dots, 5)
			for _, dot := range dots {
				require.Equal(t, []string{row.dots, row.dots, "f32"}, dot[1:], "GoMLX adds up in float32")
			}
			t.Logf("%s: loss %.3f at first, %.4f over the last 50 of 300 steps (float32 %.4f); 5 of 5 dots in %s, 0 values of the state in 16 bits",
				row.name, losses[0], last, want, row.dots)
		})
	}
}

//lazo:norace
func TestWithPolicy_fullPrecisionChangesNoBitOfTheText(t *testing.T) {
	r := plugintest.CPU(t)
	text := func(options ...managed.Option) string {
		state := newState(t, r, append(options, managed.WithOptimizer(optim.New(1e-3, optim.Adam{})))...)
		step := stepper(t, managed.TrainStep(classifier))
		one(t, step, state, first(t, digits(t).Batches(32)))
		return step.StableHLO()[0]
	}
	require.Equal(t, text(), text(managed.WithPolicy(float32s)))
	require.NotEqual(t, text(), text(managed.WithPolicy(optim.MixedBFloat16())))
}

// A step whose gradients overflow float16 changes nothing but the scale.
func TestWithPolicy_float16SkipsTheStepThatOverflows(t *testing.T) {
	scale := optim.LossScale{Start: 256}
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.New(3e-3, scale, optim.Adam{})), managed.WithPolicy(optim.MixedFloat16()))
	step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), perceptron(b))))
	}))
	const bad = 7
	var skipped []int
	n := 0
	for batch, err := range digits(t).Batches(32).All() {
		require.NoError(t, err)
		if n == bad { // an activation above 65504 is infinite
			x := make([]float32, batch.Size*64)
			for i := range x {
				x[i] = 6e4
			}
			batch.Fields[0].Array.Flat = x
		}
		var before map[string][]byte
		if n > 0 {
			before = bits(t, state)
		}
		one(t, step, state, batch)
		after := bits(t, state)
		same := n > 0
		for name := range after {
			if strings.HasPrefix(name, "/hidden/") || strings.HasPrefix(name, "/logits/") || strings.Contains(name, "Adam") {
				same = same && string(before[name]) == string(after[name])
			}
		}
		if same {
			skipped = append(skipped, n)
		}
		if n++; n == 20 {
			break
		}
	}
	require.Equal(t, []int{bad}, skipped)
	require.Equal(t, []float32{128}, floats(t, state, "/optimizers/loss_scale/scale"))
	for _, v := range floats(t, state, "/hidden/dense/weights") {
		require.False(t, math.IsNaN(float64(v)))
	}
	t.Logf("20 steps in float16, the gradients of step %d overflow: skipped %v, scale 256 to 128", bad, skipped)
}

// Normalisations, averages, frozen parts and steps of several kinds, with the values in place, cast in blocks, on one
// and on four devices.
//
//lazo:norace
func TestWithPolicy_throughTheStack(t *testing.T) {
	average := optim.Average{Decay: 0.9}
	model := func(b *managed.Builder) *graph.Node {
		require.NotEqual(t, dtypes.InvalidDType, b.DType())
		x := layers.Dense(b.Scope().In("first"), b.Field("x"), true, 8)
		x = managed.FullPrecision(b.Scope(), x, func(x *graph.Node) *graph.Node {
			require.Equal(t, dtypes.Float32, x.DType())
			return norm.BatchNorm(b.Scope().In("norm"), x, -1).Done()
		})
		require.Equal(t, b.DType(), x.DType())
		return b.ToOutputType(layers.Dense(b.Scope().In("second"), activation.Relu(x), true, 1))
	}
	loss := func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.ToOutputType(b.Field("y")), model(b))))
	}
	four, err := strategies.DataParallel(plugintest.Devices(t, 4), strategies.Parallel{})
	require.NoError(t, err)
	for _, s := range []strategies.Strategy{strategies.Jit(plugintest.CPU(t)), strategies.Eager(plugintest.CPU(t)), four} {
		t.Run(s.String(), func(t *testing.T) {
			state, err := managed.New(s, managed.WithPolicy(optim.MixedBFloat16()),
				managed.WithOptimizer(optim.New(0.02, optim.Frozen(optim.Under("/first")), optim.Clip{GlobalNorm: 1}, optim.Adam{}, average)))
			require.NoError(t, err)
			defer func() { require.NoError(t, state.Close()) }()
			train := stepper(t, managed.TrainStep(loss, managed.RunningAverages()))
			test := stepper(t, managed.TestStep(func(b *managed.Builder) { average.In(b.Scope(), b.Graph(), func() { loss(b) }) }))
			losses := learn(t, state, train, line(t, 64).Batches(16), 40)
			require.Less(t, losses[39], losses[0]/4)
			tested := learn(t, state, test, line(t, 64).Batches(16), 4)
			require.Less(t, mean(tested), losses[0])
			one(t, train, state, first(t, line(t, 64).Batches(8))) // another program for the same variables
			clone, err := state.Clone(t.Context(), s)
			require.NoError(t, err)
			defer func() { require.NoError(t, clone.Close()) }()
			one(t, train, clone, first(t, line(t, 64).Batches(8)))
			programs := train.StableHLO()
			require.Equal(t, programs[len(programs)-2], programs[len(programs)-1], "with the policy")
			for _, name := range state.Names() {
				v, err := state.Value(name)
				require.NoError(t, err)
				require.NotEqual(t, dtypes.BFloat16, v.DType(), name)
			}
			t.Logf("loss %.4f to %.5f; with averaged parameters %.4f", losses[0], losses[39], mean(tested))
		})
	}
}

func TestWithPolicy_errors(t *testing.T) {
	r := plugintest.CPU(t)
	_, err := managed.New(strategies.Jit(r), managed.WithPolicy(optim.Policy{Parameters: dtypes.Float32, Compute: dtypes.Int8, Outputs: dtypes.Float32}))
	require.EqualError(t, err, "managed: new state: policy parameters Float32, compute Int8, outputs Float32: expected floating-point types, as of optim.MixedBFloat16()")

	broken, set := true, false
	state := newState(t, r, managed.WithOptimizer(sgd()), managed.WithPolicy(optim.MixedBFloat16()), managed.WithSeed(3))
	step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		regression(b)
		if b.DType() == dtypes.BFloat16 && broken {
			panic("broken")
		}
		if w := b.Scope().Shared("dense").At("dense").GetVariable("weights"); set {
			w.SetNodeValue(graph.Neg(w.NodeValue(b.Graph())))
		}
	}))
	_, _, err = step.Step(t.Context(), state, first(t, line(t, 64).Batches(16)))
	require.ErrorContains(t, err, "broken")
	broken, set = false, true
	_, _, err = step.Step(t.Context(), state, first(t, line(t, 64).Batches(16)))
	require.ErrorContains(t, err, "the step's function sets the trainable variable /dense/dense/weights, which is not supported under a policy: set it in the optimizer, or make it not trainable")
	set = false
	losses := learn(t, state, step, line(t, 64).Batches(16), 3)

	// The variables are as if nothing had gone wrong.
	other := newState(t, r, managed.WithOptimizer(sgd()), managed.WithPolicy(optim.MixedBFloat16()), managed.WithSeed(3))
	require.Equal(t, losses, learn(t, other, stepper(t, managed.TrainStep(regression)), line(t, 64).Batches(16), 3))
	require.Equal(t, bits(t, other), bits(t, state))
}

// A state that computes in float16 without a LossScale logs a warning, once; others do not.
func TestWithPolicy_warnsOfScale(t *testing.T) {
	var log bytes.Buffer
	r := plugintest.CPU(t, xla.Log(slog.New(slog.NewTextHandler(&log, nil))))
	const warning = `level=WARN msg="managed: policy parameters Float32, compute Float16, outputs Float32: gradients below 6e-8 vanish: put an optim.LossScale into the optimizer's chain"`
	half := managed.WithPolicy(optim.MixedFloat16())
	for _, row := range []struct {
		name    string
		options []managed.Option
		warns   int
	}{
		{"no scale", []managed.Option{half, managed.WithOptimizer(optim.New(1, optim.Adam{}))}, 1},
		{"the other order", []managed.Option{managed.WithOptimizer(optim.New(1, optim.Adam{})), half}, 1},
		{"GoMLX's optimizer", []managed.Option{half, managed.WithOptimizer(sgd())}, 1},
		{"scale", []managed.Option{half, managed.WithOptimizer(optim.New(1, optim.LossScale{}, optim.Adam{}))}, 0},
		{"scale in a chain", []managed.Option{half, managed.WithOptimizer(optim.New(1, optim.Chain{optim.LossScale{}}, optim.Adam{}))}, 0},
		{"no optimizer", []managed.Option{half}, 0},
		{"bfloat16", []managed.Option{managed.WithPolicy(optim.MixedBFloat16()), managed.WithOptimizer(sgd())}, 0},
		{"no policy", []managed.Option{managed.WithOptimizer(sgd())}, 0},
	} {
		log.Reset()
		newState(t, r, row.options...)
		require.Equal(t, row.warns, strings.Count(log.String(), warning), row.name)
		require.Equal(t, row.warns, strings.Count(log.String(), "level=WARN"), row.name)
	}
}

// float32s is a policy that changes nothing.
var float32s = optim.Policy{Parameters: dtypes.Float32, Compute: dtypes.Float32, Outputs: dtypes.Float32}
