package flaxlike_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// A model learns the same on two devices as on one, with a last batch, of training and of a test, that is not full and
// that two devices cannot divide.
func TestDataParallel(t *testing.T) {
	r := plugintest.Devices(t, 2)
	two, err := strategies.DataParallel(r, strategies.Parallel{})
	require.NoError(t, err)
	set := sorted(t, 79)
	learn := func(options ...flaxlike.Option) (*flaxlike.Model, []float64) {
		m := newModel(t, nn.Dense{Units: 3}, append([]flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy")}, options...)...)
		h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 3, Validation: set}))
		require.NoError(t, err)
		return m, append(series(t, h, "val_loss"), series(t, h, "accuracy")...)
	}
	_, one := learn()
	m, both := learn(flaxlike.WithStrategy(two))
	require.InDeltaSlice(t, one, both, 1e-5)
	path := filepath.Join(t.TempDir(), "weights")
	require.NoError(t, m.Save(path))
	other := newModel(t, nn.Dense{Units: 3}, flaxlike.WithStrategy(two), flaxlike.WithSeed(5))
	require.NoError(t, other.Init(t.Context(), first(t, set, 8)))
	require.NotEqual(t, values(t, m), values(t, other))
	require.NoError(t, other.Load(t.Context(), path))
	require.Equal(t, values(t, m), values(t, other))
}

// The rows of a batch are divided over devices, with padding; its examples count. So the numbers are those of one
// device, for any sizes, unless the user asked for examples to be dropped.
//
//lazo:norace
func TestR06_rowsAreDividedAndExamplesCounted(t *testing.T) {
	whole := sorted(t, 9)
	model := func(strategy strategies.Strategy, batch int) *flaxlike.Model {
		m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithStrategy(strategy), flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithBatchSize(batch))
		require.NoError(t, m.Init(t.Context(), first(t, whole, 6)))
		return m
	}
	one := model(jit(t), 9)
	runtimes := map[int]*xla.Runtime{}
	for _, devices := range []int{2, 3} {
		r := plugintest.Devices(t, devices)
		runtimes[devices] = r
	}
	compared, refused := 0, 0
	for devices, r := range runtimes {
		for _, pad := range []bool{false, true} {
			on, err := strategies.DataParallel(r, strategies.Parallel{Pad: pad})
			require.NoError(t, err)
			for _, batch := range []int{2, 5, 6} {
				m := model(on, batch)
				for _, n := range []int{1, 5, 9} {
					at := fmt.Sprintf("%d examples by %d on %d devices, pad %t", n, batch, devices, pad)
					set, err := whole.Slice(0, n)
					require.NoError(t, err)

					got, err := m.Evaluate(t.Context(), set)
					if batch%devices != 0 && !pad {
						require.ErrorIs(t, err, strategies.ErrLeftover, at)
						refused++
					} else {
						require.NoError(t, err, at)
						want, err := one.Evaluate(t.Context(), set)
						require.NoError(t, err)
						for _, name := range []string{"loss", "accuracy"} {
							require.InDelta(t, want[name], got[name], 1e-6, "%s: %s", at, name)
						}
						compared++
					}

					preds, err := m.Predict(t.Context(), set)
					if size := min(batch, n); size%devices != 0 && !pad {
						require.Error(t, err, at) // no prediction may be missing
						refused++
						continue
					}
					require.NoError(t, err, at)
					want, err := one.Predict(t.Context(), set)
					require.NoError(t, err)
					require.Equal(t, output(t, want).Dims, output(t, preds).Dims, at)
					require.InDeltaSlice(t, output(t, want).Flat, output(t, preds).Flat, 1e-6, at)
					compared++
				}
			}
		}
	}
	require.Equal(t, 72, compared+refused)
	require.Greater(t, compared, 45)
	t.Logf("%d figures as on one device, %d refused", compared, refused)
}
