package strategytest

import (
	"bytes"
	"testing"
	"time"

	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// Eight devices on few cores: XLA's exchange between devices waits for threads, of which there are too few, if several
// runs are under way. So no run is started before the one before has ended.
func TestDataParallel_doesNotHang(t *testing.T) {
	r := plugintest.Devices(t, 8)
	s, err := strategies.DataParallel(r, strategies.Parallel{})
	require.NoError(t, err)
	start, hangs := time.Now(), &bytes.Buffer{}
	for range parallelRuns {
		state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
		require.NoError(t, err)
		step := managed.TrainStep(deep)
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state,
			wave(t, 256).Batches(32, data.Shuffle(3)), loop.Until(loop.Steps(200)), callbacks.Watchdog(time.Minute, hangs))
		require.NoError(t, err)
		require.EqualValues(t, 200, result.Elapsed.Steps)
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
	require.Empty(t, hangs.String())
	t.Logf("%d runs of 200 steps on 8 devices: 0 hangs, %v", parallelRuns, time.Since(start).Round(time.Second))
}
