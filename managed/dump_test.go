package managed_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

var _ abilities.XLADumper = (*managed.State)(nil)

func TestDumpXLA_inAProfile(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := managed.TrainStep(regression)
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	dir := filepath.Join(t.TempDir(), "profile")
	training := loop.New(loop.On(loop.EachStep, step))
	_, err := training.Run(t.Context(), state, line(t, 64).Batches(16), callbacks.Profile(dir, loop.Steps(2), loop.Steps(1)))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "xla", "00-train_step.mlir"))
	require.NoError(t, err)
	require.Equal(t, step.StableHLO()[0], string(text))
	require.Contains(t, string(text), "stablehlo.")
	for _, name := range []string{"trace.out", "cpu.pprof", "time.pprof", "heap.pprof"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Positive(t, info.Size(), name)
	}
	pipe := filepath.Join(t.TempDir(), "00-train_step.mlir")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600), "writing into it would wait for ever")
	require.ErrorContains(t, state.DumpXLA(filepath.Dir(pipe)), "managed: dump: open "+pipe+": is not a regular file")
	require.ErrorContains(t, state.DumpXLA(filepath.Join(dir, "missing")), "managed: dump: ")
}
