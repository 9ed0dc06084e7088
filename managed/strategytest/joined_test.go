package strategytest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

var exchangeOp = regexp.MustCompile(`= (\(?)(\w+)\[.*? (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)\(`)

// TestDataParallel_exchangesOnce counts what the devices of one process exchange in a step: one array per dtype, with
// gradients, loss and metrics.
func TestDataParallel_exchangesOnce(t *testing.T) {
	chain := func(b *managed.Builder) {
		h := b.Field("x")
		for i := range 10 {
			h = graph.Tanh(nn.Dense{Units: 16}.Apply(b.Scope().In("dense_%d", i), h))
		}
		y := nn.Dense{Units: 1}.Apply(b.Scope().In("last"), h)
		b.Loss("loss", losses.SquaredError(b.Field("y"), y))
		b.Track("mean", metrics.Mean(), nil, graph.Squeeze(y, 1))
		b.Track("sum", metrics.Sum(), nil, graph.Squeeze(b.Field("y"), 1))
	}
	recurrent := func(b *managed.Builder) {
		y := nn.Dense{Units: 1}.Apply(b.Scope().In("last"), nn.LSTM{Units: 16, Last: true}.Apply(b.Scope().In("lstm"), b.Field("x")))
		b.Loss("loss", losses.SquaredError(b.Field("y"), y))
		b.Track("mean", metrics.Mean(), nil, graph.Squeeze(y, 1))
		b.Track("sum", metrics.Sum(), nil, graph.Squeeze(b.Field("y"), 1))
	}
	for _, row := range []struct {
		name    string
		devices int
		network func(*managed.Builder)
		x       []int
	}{{"2", 2, chain, []int{64, 16}}, {"4", 4, chain, []int{64, 16}}, {"LSTM", 4, recurrent, []int{64, 12, 3}}} {
		n := row.devices
		t.Run(row.name, func(t *testing.T) {
			on, err := strategies.DataParallel(plugintest.Devices(t, n), strategies.Parallel{})
			require.NoError(t, err)
			clipped := optim.Chain{optim.SkipNonFinite(), optim.Clip{GlobalNorm: 1}, optim.Adam{}}
			state, err := managed.New(on, managed.WithOptimizer(optim.New(1e-3, clipped...)))
			require.NoError(t, err)
			step := managed.TrainStep(row.network)
			batch, err := managed.ZeroBatch(data.X([]float32(nil), row.x...), data.Y([]float32(nil), 64, 1))
			require.NoError(t, err)
			p, err := step.Program(t.Context(), state, batch)
			require.NoError(t, err)
			text, err := p.Optimized()
			require.NoError(t, err)
			var found []string
			for line := range strings.Lines(text) {
				if m := exchangeOp.FindStringSubmatch(line); m != nil {
					require.Empty(t, m[1], "each array of a tuple is an exchange: %s", line)
					found = append(found, m[3]+" "+m[2])
				}
			}
			require.ElementsMatch(t, []string{"all-reduce f32", "all-reduce f64"}, found)
			require.NoError(t, step.Close())
			require.NoError(t, state.Close())
		})
	}
}
