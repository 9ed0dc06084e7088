package managed_test

import (
	"iter"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

var pair = data.Batch{Fields: []data.Field{data.X([]float32{1, 2, 3, 4}, 2, 2)}}

// A training step that reads averages also reads those of the parameters that it adds to the training.
func TestAverage_ofParametersThatJoin(t *testing.T) {
	r := plugintest.CPU(t)
	average := optim.Average{Decay: 0.5}
	both := func(b *managed.Builder) (body, head *graph.Node) {
		of := func(name string) *graph.Node {
			return b.Scope().At("%s", name).VariableWithValue("w", float32(0)).NodeValue(b.Graph())
		}
		return of("body"), of("head")
	}
	loss := func(b *managed.Builder) { // each step adds 1 to both
		body, head := both(b)
		b.Loss("loss", graph.Add(graph.Neg(graph.Add(body, head)), graph.MulScalar(graph.ReduceAllSum(b.Field("x")), 0)))
	}
	reads := func(b *managed.Builder) {
		average.In(b.Scope(), b.Graph(), func() {
			body, head := both(b)
			b.Metric("body", graph.StopGradient(body))
			b.Metric("head", graph.StopGradient(head))
		})
	}
	for name, make := range map[string]func(r strategies.Strategy) strategies.Strategy{"jit": func(s strategies.Strategy) strategies.Strategy { return s },
		"eager": func(s strategies.Strategy) strategies.Strategy { return strategies.Eager(s.Runtime()) }} {
		t.Run(name, func(t *testing.T) {
			state, err := managed.New(make(strategies.Jit(r)), managed.WithOptimizer(optim.New(1, average)))
			require.NoError(t, err)
			defer func() { require.NoError(t, state.Close()) }()
			warm := stepper(t, managed.TrainStep(loss, managed.TrainOnly(func(name string) bool { return strings.HasPrefix(name, "/head/") })))
			full := stepper(t, managed.TrainStep(func(b *managed.Builder) { loss(b); reads(b) }))
			one(t, warm, state, pair)
			for _, want := range [][2]float64{{0, 1}, {1, 5. / 3}, {5. / 3, 17. / 7}, {17. / 7, 49. / 15}} {
				_, logs, err := full.Step(t.Context(), state, pair)
				require.NoError(t, err)
				require.InDelta(t, want[0], float(t, logs, "body"), 1e-6)
				require.InDelta(t, want[1], float(t, logs, "head"), 1e-6)
			}
		})
	}
}

// A run whose training step reads averages, and in which parameters join, is resumed bit-identical without preparing
// other steps; so are the averages of an evaluation.
func TestAverage_ofParametersThatJoin_resumed(t *testing.T) {
	r := plugintest.CPU(t)
	average := optim.Average{Decay: 0.5}
	network := func(b *managed.Builder) *graph.Node {
		x := graph.Tanh(nn.Dense{Units: 2}.Apply(b.Scope().At("a"), b.Field("x")))
		return nn.Dense{Units: 1}.Apply(b.Scope().At("w"), x)
	}
	error2 := func(y *graph.Node, target float64) *graph.Node {
		return graph.ReduceAllMean(graph.Square(graph.AddScalar(y, -target)))
	}
	warm := managed.TrainStep(func(b *managed.Builder) { b.Loss("loss", error2(network(b), 1)) },
		managed.TrainOnly(func(name string) bool { return strings.HasPrefix(name, "/w/") }))
	full := managed.TrainStep(func(b *managed.Builder) {
		y := network(b)
		b.Loss("loss", error2(y, 1))
		average.In(b.Scope(), b.Graph(), func() {
			b.Inference(func() {
				b.Loss("consistency", graph.ReduceAllMean(graph.Square(graph.Sub(graph.StopGradient(network(b)), y))))
			})
		})
	})
	test := managed.TestStep(func(b *managed.Builder) {
		average.In(b.Scope(), b.Graph(), func() { b.Metric("averaged", error2(network(b), 1)) })
	})
	endless := loop.From(func(int64) iter.Seq2[data.Batch, error] {
		return func(yield func(data.Batch, error) bool) {
			for yield(pair, nil) {
			}
		}
	})
	run := func(dir string, until int64) (map[string][]byte, float64) {
		for _, s := range []*managed.Stepper{warm, full, test} {
			require.NoError(t, s.Close())
		}
		state := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{}, average)))
		late := loop.After(loop.Steps(5))
		_, err := loop.New(loop.On(late.Not(), warm), loop.On(late, full)).Run(t.Context(), state, endless, loop.Until(loop.Steps(until)), checkpoint.Resume(dir))
		require.NoError(t, err)
		return bits(t, state), float(t, one(t, stepper(t, test), state, pair), "averaged")
	}
	whole, averaged := run(t.TempDir(), 12)
	for _, stop := range []int64{3, 5, 7} {
		dir := t.TempDir()
		run(dir, stop)
		again, now := run(dir, 12)
		require.Equal(t, whole, again, "stopped after %d", stop)
		require.Equal(t, averaged, now)
	}

	// The first step on a restored state is an evaluation.
	dir := t.TempDir()
	_, want := run(dir, 7)
	state := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{}, average)))
	folder, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	newest, err := folder.Newest(t.Context())
	require.NoError(t, err)
	require.NoError(t, state.Restore(t.Context(), newest))
	require.NoError(t, test.Close())
	require.Equal(t, want, float(t, one(t, stepper(t, test), state, pair), "averaged"))

	// A step of another part of the network comes first, and then the evaluation.
	part := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", error2(nn.Dense{Units: 2}.Apply(b.Scope().At("a"), b.Field("x")), 1))
	}))
	state = newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{}, average)))
	one(t, part, state, pair)
	one(t, full, state, pair)
	one(t, full, state, pair)
	again := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{}, average)))
	require.NoError(t, again.Restore(t.Context(), reread(t, state)))
	for _, s := range []*managed.State{state, again} {
		one(t, part, s, pair)
	}
	require.Equal(t, float(t, one(t, test, state, pair), "averaged"), float(t, one(t, test, again, pair), "averaged"))
}
