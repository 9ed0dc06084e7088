package managed_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
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
