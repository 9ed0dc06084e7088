package managed_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/ops"
)

// A step of gradient descent subtracts optax's gradients, clipped per example; the loss is the same as without
// clipping.
func TestClipByExample(t *testing.T) {
	var peer struct {
		W, V, X, Y []float32
		Gradients  [2][]float32
		Loss       float64
	}
	text, err := os.ReadFile("testdata/clipped.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &peer))
	run := func(limit float64) (float64, error) {
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.New(0.5)), managed.WithValues(map[string]*tensors.Tensor{
			"/w": tensors.FromFlatDataAndDimensions(peer.W, 3, 4), "/v": tensors.FromFlatDataAndDimensions(peer.V, 4, 1)}))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		step := managed.TrainStep(func(b *managed.Builder) {
			weight := func(name string, dims ...int) *graph.Node {
				return b.Scope().VariableWithShape(name, shapes.Make(dtypes.Float32, dims...)).NodeValue(b.Graph())
			}
			b.Loss("loss", b.ClipByExample(limit, []*graph.Node{b.Field("x"), b.Field("y")}, func(example []*graph.Node) *graph.Node {
				y := graph.Dot(graph.Tanh(graph.Dot(example[0], weight("w", 3, 4)).Product()), weight("v", 4, 1)).Product()
				return graph.ReduceAllSum(graph.Square(graph.Sub(y, example[1])))
			}))
		})
		defer func() { require.NoError(t, step.Close()) }()
		batch := data.Batch{Fields: []data.Field{data.X(peer.X, 6, 3), data.Y(peer.Y, 6, 1)}}
		_, logs, err := step.Step(t.Context(), state, batch)
		if err != nil {
			return 0, err
		}
		for i, start := range [][]float32{peer.W, peer.V} {
			v, err := state.Value([]string{"/w", "/v"}[i])
			require.NoError(t, err)
			for k, got := range tensors.MustCopyFlatData[float32](v) {
				require.InDelta(t, start[k]-0.5*peer.Gradients[i][k], got, 1e-6)
			}
		}
		return logs.Float("loss")
	}
	loss, err := run(4)
	require.NoError(t, err)
	require.InDelta(t, peer.Loss, loss, 1e-5)
	_, err = run(0)
	require.ErrorContains(t, err, "ClipByExample: the limit is 0, expected a positive number")

	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.New(0.1)))
	_, _, err = stepper(t, managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", b.ClipByExample(1, []*graph.Node{b.Field("x")}, func(example []*graph.Node) *graph.Node {
			return graph.ReduceAllMean(graph.Square(nn.BatchNorm{}.Apply(b.Scope(), example[0])))
		}))
	})).Step(t.Context(), state, pair)
	require.ErrorContains(t, err, "ClipByExample: the batch normalization in /batch_normalization would normalize each example by itself")
}

// The norm of an example is that of the parameters that the step updates: those that the optimizer freezes, and those
// that the step leaves out, have no part in it.
func TestClipByExample_withoutTheFrozen(t *testing.T) {
	const limit, rate = 2.0, 0.5
	for _, row := range []struct {
		name  string
		chain []optim.Transformation
		only  []managed.StepOption
		want  float32 // how far w goes
	}{
		{"all", nil, nil, rate * limit / 100.005}, // the norm of 1 and 100
		{"frozen", []optim.Transformation{optim.Frozen(optim.Under("/fixed"))}, nil, rate},
		{"left out", nil, []managed.StepOption{managed.TrainOnly(func(name string) bool { return name == "/w" })}, rate},
	} {
		t.Run(row.name, func(t *testing.T) {
			state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.New(rate, row.chain...)))
			require.NoError(t, err)
			defer func() { require.NoError(t, state.Close()) }()
			step := managed.TrainStep(func(b *managed.Builder) {
				weight := func(name string) *graph.Node {
					return b.Scope().VariableWithValue(name, float32(3)).NodeValue(b.Graph())
				}
				b.Loss("loss", b.ClipByExample(limit, []*graph.Node{b.Field("x")}, func(example []*graph.Node) *graph.Node {
					x := graph.Reshape(example[0])
					return graph.Add(graph.Mul(x, weight("w")), graph.MulScalar(graph.Mul(x, weight("fixed")), 100))
				}))
			}, row.only...)
			defer func() { require.NoError(t, step.Close()) }()
			_, _, err = step.Step(t.Context(), state, data.Batch{Fields: []data.Field{data.X([]float32{1, 1}, 2, 1)}})
			require.NoError(t, err)
			v, err := state.Value("/w")
			require.NoError(t, err)
			require.InDelta(t, 3-row.want, tensors.ToScalar[float32](v), 1e-5)
		})
	}
}

// TestS18_layersInABody: layers by In within ClipByExample, Scan and While, whose functions Eager calls once for each
// example and turn.
func TestS18_layersInABody(t *testing.T) {
	layer := func(b *managed.Builder, name string, x *graph.Node) *graph.Node {
		w := b.Scope().In("%s", name).VariableWithShape("w", shapes.Make(dtypes.Float32, 3, 3))
		return graph.Tanh(graph.Dot(x, w.NodeValue(b.Graph())).Product())
	}
	build := func(b *managed.Builder) {
		h, _ := ops.Scan([]*graph.Node{graph.Ones(b.Graph(), shapes.Make(dtypes.Float32, 2, 3))}, nil, func(carry, _ []*graph.Node) (next, out []*graph.Node) {
			return []*graph.Node{graph.AddScalar(layer(b, "scanned", carry[0]), 0.25)}, nil
		}, ops.Length(3))
		turns := ops.While(func(v []*graph.Node) *graph.Node {
			return graph.LessThan(v[1], graph.Const(b.Graph(), float32(3)))
		}, func(v []*graph.Node) []*graph.Node {
			return []*graph.Node{layer(b, "asked", v[0]), graph.AddScalar(v[1], 1)}
		}, graph.StopGradient(h[0]), graph.Const(b.Graph(), float32(0)))
		b.Metric("turned", graph.ReduceAllSum(turns[0]))
		b.Loss("loss", b.ClipByExample(1, []*graph.Node{b.Field("x")}, func(example []*graph.Node) *graph.Node {
			y := layer(b, "second", layer(b, "first", example[0]))
			return graph.Add(graph.ReduceAllSum(graph.Square(y)), graph.ReduceAllSum(graph.Square(h[0])))
		}))
	}
	batch := data.Batch{Fields: []data.Field{data.X([]float32{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1, 1.1, 1.2}, 4, 3)}}
	run := func(s strategies.Strategy, err error) (figures []float64) {
		require.NoError(t, err)
		state, err := managed.New(s, managed.WithOptimizer(optim.New(0.5)))
		require.NoError(t, err)
		step := managed.TrainStep(build)
		for range 3 {
			_, logs, err := step.Step(t.Context(), state, batch)
			require.NoError(t, err)
			for _, name := range []string{"loss", "turned"} {
				v, err := logs.Float(name)
				require.NoError(t, err)
				figures = append(figures, v)
			}
		}
		require.NoError(t, errors.Join(step.Close(), state.Close()))
		return figures
	}
	r := plugintest.CPU(t)
	want := run(strategies.Jit(r), nil)
	require.Less(t, want[4], want[0], "it learns")
	require.InDeltaSlice(t, want, run(strategies.DataParallel(r, strategies.Parallel{})), 1e-5)
	require.InDeltaSlice(t, want, run(strategies.Eager(r), nil), 1e-5)
}
