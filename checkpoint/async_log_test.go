package checkpoint_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// A run whose steps are faster than the disk is a normal one: its log is silent, unless it is asked for all.
func TestAsync_aReplacedCheckpointIsNoWarning(t *testing.T) {
	for _, row := range []struct {
		level  slog.Level
		silent bool
	}{{slog.LevelInfo, true}, {slog.LevelDebug, false}} {
		t.Run(row.level.String(), func(t *testing.T) {
			var log bytes.Buffer
			disk := &slow{going: make(chan struct{})}
			f := openMem(t, vfs.Hook(&vfs.Mem{}, disk.before), checkpoint.Options{
				Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: row.level}))})
			a := f.Async()
			for i := 1; i <= 10; i++ {
				require.NoError(t, a.Save(t.Context(), checkpoint.Step(i), content(i)))
			}
			close(disk.going)
			require.NoError(t, a.Close())
			require.GreaterOrEqual(t, a.Replaced(), int64(8))
			if row.silent {
				require.Empty(t, log.String())
				return
			}
			require.EqualValues(t, a.Replaced(), strings.Count(log.String(), "level=DEBUG msg=\"checkpoint: not saved"))
		})
	}
}
