package flaxlike_test

import (
	"errors"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// R08: a callback on an entry that the run will not log is an error before the first step.
func TestR08_entriesThatNothingLogs(t *testing.T) {
	set := line(t, 128)
	for entry, want := range map[string]string{
		"loss_val":    `a callback waits for "loss_val": no such entry; did you mean "val_loss"?`,
		"val_los":     `flaxlike: fit: change 1 (on each val_los: keep best): it is not known whether a lower or a higher "val_los" is better (did you mean "val_loss"?): correct the name`,
		"accuracy":    `these will be logged: epoch, learning_rate, loss, val_loss`,
		"losses.loss": "", "val_loss": "", "losses.val_loss": "",
	} {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		require.NoError(t, m.Init(t.Context(), first(t, set, 32)))
		before := values(t, m)
		_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2, Validation: set, Callbacks: []loop.Option{callbacks.KeepBest(entry)}}))
		if want == "" {
			require.NoError(t, err, entry)
			continue
		}
		require.ErrorContains(t, err, want)
		require.Equal(t, entry != "val_los", errors.Is(err, loop.ErrNoEntry))
		require.Equal(t, before, values(t, m), "no step was made")
	}
}

// An entry that a checkpoint is kept by, and nothing logs, is an error before the first step; the only loss is logged
// as "loss", whatever its name.
func TestS36_bestByALossOfOnesOwn(t *testing.T) {
	set := line(t, 8)
	own := flaxlike.Loss{Name: "own", Func: func(labels, output *graph.Node) *graph.Node { return graph.Square(graph.Sub(labels, output)) }}
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss(own))
	for entry, hint := range map[string]string{"own_loss": `"loss"`, "val_own_loss": `"val_loss"`} {
		for _, option := range []loop.Option{callbacks.KeepBest(entry), checkpoint.Resume(t.TempDir(), checkpoint.KeepBest(entry)),
			checkpoint.Resume(t.TempDir(), checkpoint.Options{Best: entry, Mode: loop.Lowest})} {
			_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Validation: set, Callbacks: []loop.Option{option}}))
			require.ErrorContains(t, err, "before the first step: a callback waits for \""+entry+"\": no such entry; did you mean "+hint)
			require.ErrorIs(t, err, loop.ErrNoEntry)
		}
	}
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Callbacks: []loop.Option{checkpoint.Resume(t.TempDir(), checkpoint.KeepBest("loss"))}}))
	require.NoError(t, err)
}
