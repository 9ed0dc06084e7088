package optim_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/optim"
)

// With Accumulate, steps in turns that train different parameters each make progress.
func TestS15_accumulateInTurns(t *testing.T) {
	r := plugintest.CPU(t)
	c := newCopies(t, false)
	batches := c.batches(t)[:8]
	state := newState(t, r, optim.New(0.02, optim.Accumulate(2)))
	c.train(t, state, "in turns", batches, 0)
	for _, name := range []string{"w", "b"} {
		require.Equal(t, 2.0, number(t, state, "/optimizers/updates")/2, "each of w and b has 4 batches, so 2 updates")
		v, err := state.Value("/c0/" + name)
		require.NoError(t, err)
		require.NotEqual(t, tensors.MustCopyFlatData[float64](v)[0], float64(map[string][]float32{"w": made(24, 5, 11, 8, 0), "b": made(4, 3, 7, 4, 0)}[name][0]), name)
	}
}

// Accumulating k batches equals one batch of all their examples: the same parameters up to rounding, the same counts.
func TestAccumulate_law(t *testing.T) {
	r := plugintest.CPU(t)
	for _, k := range []int{1, 2, 5, 8} {
		const updates = 7
		all := slopes(t, updates*k, 2)
		small := run(t, r, optim.New(0.05, optim.Accumulate(k), optim.Clip{GlobalNorm: 0.5}, optim.Adam{}, optim.ScaleBySchedule(optim.Cosine(1, 0, 10))), all)
		large := run(t, r, optim.New(0.05, optim.Clip{GlobalNorm: 0.5}, optim.Adam{}, optim.ScaleBySchedule(optim.Cosine(1, 0, 10))), slopes(t, updates, 2*k))
		apart := farthest(t, parameters(t, large), parameters(t, small))
		require.LessOrEqual(t, apart, 2e-6, "k = %d", k)
		require.Equal(t, float64(updates), number(t, small, "/optimizers/updates"))
		require.Equal(t, float64(updates*k), number(t, small, "/global_step"), "batches")
		require.Zero(t, number(t, small, "/optimizers/accumulate/w/batches"))
		t.Logf("k = %d: %.1e apart", k, apart)
	}
}

// Between updates only the accumulation's own state changes.
func TestAccumulate_holdsBack(t *testing.T) {
	r := plugintest.CPU(t)
	state, step := newState(t, r, optim.New(0.05, optim.Accumulate(4), optim.Adam{}, optim.Average{Decay: 0.5})), trainStep(t, bowl)
	var before map[string][]byte
	for i, b := range slopes(t, 12, 1) {
		train(t, step, state, []data.Batch{b})
		now, changed := bits(t, state), map[string]bool{}
		for name := range now {
			changed[name] = string(now[name]) != string(before[name])
		}
		if i%4 == 3 {
			for _, name := range []string{"/w", "/b", "/optimizers/updates", "/AdamOptimizer/step", "/AdamOptimizer/w_1st_moment", "/optimizers/average/updates", "/optimizers/average/w/sum"} {
				require.True(t, changed[name], "%s at batch %d", name, i)
			}
		} else if i > 0 {
			for name := range now {
				kept := name != "/global_step" && !(strings.HasPrefix(name, "/optimizers/accumulate/") && !strings.HasSuffix(name, "/count"))
				require.Equal(t, !kept, changed[name], "%s at batch %d", name, i)
			}
		}
		before = now
	}
}
