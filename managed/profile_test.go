package managed_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/losses"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// XLA's matrix product has memory overwritten by a signal that meets one of its threads: 9 of 9 trainings under Go's
// CPU profiler died of a damaged heap before signals were kept from these threads (see pjrt.WithoutSignals).
func TestProfilerDoesNotDamageTheHeap(t *testing.T) {
	const n, steps = 1280, 150
	x, y := make([]float32, n*784), make([]int32, n)
	for i := range x {
		x[i] = float32(i%1000) / 1000
	}
	set, err := data.New(data.X(x, n, 784), data.Y(y, n))
	require.NoError(t, err)
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	step := managed.TrainStep(func(b *managed.Builder) {
		h := b.Field("x")
		for i := range 3 {
			h = activation.Relu(layers.Dense(b.Scope().In("dense_%d", i), h, true, 512))
		}
		b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), h)))
	})
	defer func() { require.NoError(t, step.Close()) }()
	dir := t.TempDir()
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(128), loop.Until(loop.Steps(steps)),
		callbacks.Profile(dir, loop.Steps(0), loop.Steps(steps)))
	require.NoError(t, err)
	loss, err := result.History.Last("loss")
	require.NoError(t, err)
	require.Less(t, loss, 0.1)
	f, err := os.Open(filepath.Join(dir, "time.pprof"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	times, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Contains(t, string(times), "managed.(*Stepper).StepBlock", "R39: the time of the steps is in the profile, though XLA's threads are not")
	t.Logf("%d steps under the CPU profiler, 0 process deaths", steps)
}
