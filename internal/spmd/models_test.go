package spmd_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/ops"
)

// sample is a step of a model that is sharded over devices.
type sample struct {
	build    managed.Build
	batch    data.Batch
	test     bool
	optimize optim.Chain
	options  strategies.Parallel
}

// samples are steps whose programs have each kind of exchange that the strategies use.
func samples(t testing.TB, devices int) map[string]sample {
	batch := func(dims ...int) data.Batch {
		b, err := managed.ZeroBatch(data.X([]float32(nil), append([]int{16}, dims...)...), data.Y([]float32(nil), 16, 1))
		require.NoError(t, err)
		return b
	}
	tokens, err := managed.ZeroBatch(data.X([]int32(nil), 16, 8), data.Y([]int32(nil), 16, 8))
	require.NoError(t, err)
	end := func(b *managed.Builder, h *graph.Node) {
		h = nn.Dense{Units: 1}.Apply(b.Scope().In("last"), h)
		b.Loss("loss", graph.ReduceAllMean(graph.Square(graph.Sub(h, b.Field("y")))))
	}
	mlp := func(b *managed.Builder) {
		h := graph.Tanh(nn.Dense{Units: 32}.Apply(b.Scope().In("first"), b.Field("x")))
		end(b, graph.Tanh(nn.Dense{Units: 16}.Apply(b.Scope().In("second"), h)))
	}
	wide := func(b *managed.Builder) {
		h := graph.Tanh(nn.Dense{Units: 256}.Apply(b.Scope().In("first"), b.Field("x")))
		end(b, graph.Tanh(nn.Dense{Units: 128}.Apply(b.Scope().In("second"), h)))
	}
	layer := func(apply func(s *model.Scope, x *graph.Node) *graph.Node) managed.Build {
		return func(b *managed.Builder) { end(b, apply(b.Scope().In("layer"), b.Field("x"))) }
	}
	sharded := strategies.Parallel{ModelDevices: 2, Shard: func(_ string, shape shapes.Shape) xla.Split {
		if shape.Rank() == 2 && shape.Dimensions[1]%2 == 0 {
			return xla.Split{nil, {strategies.ModelAxis}}
		}
		return nil
	}}
	figures := func(b *managed.Builder) {
		y, x := graph.Squeeze(b.Field("y"), 1), graph.ReduceSum(b.Field("x"), 1)
		b.Track("mean", metrics.Mean(), nil, y)
		b.Track("r2", metrics.R2(1), nil, y, x)
		b.Track("auc", metrics.AUC(50), nil, graph.GreaterThan(y, graph.ScalarZero(y.Graph(), y.DType())), graph.Sigmoid(x))
		b.Track("accuracy", metrics.Accuracy(), nil, graph.ConvertDType(y, dtypes.Int32), graph.ArgMax(b.Field("x"), 1))
	}
	all := map[string]sample{
		"mlp":            {build: mlp, batch: batch(8)},
		"wide":           {build: wide, batch: batch(300)},
		"fsdp":           {build: mlp, batch: batch(8), options: strategies.Parallel{Shard: strategies.FullyShard(devices, 32)}},
		"tensor":         {build: mlp, batch: batch(8), options: sharded},
		"clipped":        {build: mlp, batch: batch(8), optimize: optim.Chain{optim.SkipNonFinite(), optim.Clip{GlobalNorm: 1}, optim.Adam{}, optim.WeightDecay{Rate: 0.01}}},
		"metrics":        {build: figures, batch: batch(8), test: true},
		"tokens":         {build: transformer, batch: tokens},
		"sharded tokens": {build: transformer, batch: tokens, options: strategies.Parallel{Shard: strategies.FullyShard(devices, 32)}},
		"lstm": {batch: batch(6, 4), build: layer(func(s *model.Scope, x *graph.Node) *graph.Node {
			out := nn.LSTM{Units: 8, Last: true}.Apply(s, x)
			return out
		})},
		"convolution": {batch: batch(12, 4), build: layer(func(s *model.Scope, x *graph.Node) *graph.Node {
			return graph.ReduceMean(nn.Conv{Channels: 4, Window: []int{3}, Strides: []int{2}}.Apply(s, x), 1)
		})},
		"batch norm": {batch: batch(8), build: func(b *managed.Builder) {
			h := nn.Dense{Units: 16}.Apply(b.Scope().In("first"), b.Field("x"))
			end(b, nn.BatchNorm{}.Apply(b.Scope().In("norm"), h))
		}},
		"dropout": {batch: batch(8), build: layer(func(s *model.Scope, x *graph.Node) *graph.Node {
			return layers.Dropout(s, x, graph.Scalar(x.Graph(), x.DType(), 0.5))
		})},
		"sort": {batch: batch(8), build: layer(func(s *model.Scope, x *graph.Node) *graph.Node {
			return graph.Add(x, graph.Sort(graph.StopGradient(x), 0, true))
		})},
		// All examples decide the loop's length: its condition exchanges too.
		"while": {batch: batch(8), build: func(b *managed.Builder) {
			x := b.Field("x")
			zero := graph.ScalarZero(x.Graph(), x.DType())
			out := ops.While(func(s []*graph.Node) *graph.Node {
				return graph.LessThan(graph.ReduceAllSum(s[0]), graph.AddScalar(zero, 1e4))
			}, func(s []*graph.Node) []*graph.Node {
				return []*graph.Node{graph.Add(s[0], graph.AddScalar(graph.Mul(s[0], graph.ReduceAllMax(s[0])), 1))}
			}, x)
			end(b, graph.MulScalar(graph.StopGradient(out[0]), 1e-4))
		}},
	}
	return all
}

// transformer has a block of attention, a layer at each position, and logits of tokens.
func transformer(b *managed.Builder) {
	scope := b.Scope()
	embedding := nn.Embedding{Vocabulary: 64, Width: 32}
	x := embedding.Apply(scope.In("tokens"), b.Field("x"))
	x = graph.Add(x, nn.Attention{Heads: 4, Causal: true, Rotary: 1e4}.Apply(scope.In("attention"), nn.LayerNorm{}.Apply(scope.In("norm"), x)))
	x = graph.Add(x, nn.Dense{Units: 32}.Apply(scope.In("narrow"), graph.Tanh(nn.Dense{Units: 64}.Apply(scope.In("wide"), x))))
	logits := graph.LogSoftmax(embedding.Logits(scope.Shared("tokens"), x))
	b.Loss("loss", graph.Neg(graph.ReduceAllMean(graph.Mul(logits, graph.OneHot(b.Field("y"), 64, dtypes.Float32)))))
}

// programs returns the StableHLO texts of the named samples, or of all, over this many devices. It needs no device.
func programs(t *testing.T, devices int, names ...string) map[string]string {
	r := plugintest.Described(t, devices)
	texts := map[string]string{}
	all := samples(t, devices)
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(all))
	}
	for _, name := range names {
		s, ok := all[name]
		require.True(t, ok, name)
		on, err := strategies.DataParallel(r, s.options)
		require.NoError(t, err)
		chain := s.optimize
		if chain == nil {
			chain = optim.Chain{optim.Adam{}}
		}
		state, err := managed.New(on, managed.WithOptimizer(optim.New(1e-3, chain...)))
		require.NoError(t, err)
		step := managed.TrainStep(s.build)
		if s.test {
			step = managed.TestStep(s.build)
		}
		program, err := step.Program(t.Context(), state, s.batch)
		require.NoError(t, err, name)
		texts[name] = program.StableHLO()
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
	return texts
}
