package selection_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/selection"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// A search that is killed at any call that writes a record, or after it, continues and has the same table.
func TestSearch_killedAtEachRecord(t *testing.T) {
	of := func(dir string) selection.Search {
		s := rates(t, dir)
		s.Space[0], s.Grid, s.Trials, s.FirstEpochs, s.Factor = selection.Parameter{Name: "rate", Low: 1e-4, High: 0.1, Log: true}, 0, 4, 1, 2
		inner := s.Make
		s.Make = func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
			m, f, err := inner(ctx, p)
			f.Epochs = 0
			return m, f, err
		}
		return s
	}
	want, err := of(t.TempDir()).Run(t.Context())
	require.NoError(t, err)
	s := of(t.TempDir())
	files, err := vfs.OS(s.Dir)
	require.NoError(t, err)
	defer files.Close()
	killed := errors.New("killed")
	runs, passed := 0, map[vfs.Call]bool{}
	for ; runs < 200; runs++ {
		dead := false
		found, err := s.RunOn(t.Context(), vfs.Hook(files, func(c vfs.Call) error { // each call that changes something fails once
			if dead || c.Op.Changes() && c.Op != vfs.OpLock && !passed[c] {
				passed[c], dead = true, true
				return killed
			}
			return nil
		}))
		if err == nil {
			require.Equal(t, table(t, want), table(t, found))
			break
		}
		require.ErrorIs(t, err, killed)
	}
	require.Greater(t, runs, 4*7, "seven records and that of the search, of some calls each")
	t.Logf("%d runs, killed at each call that writes", runs)
}
