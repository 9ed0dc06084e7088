package install

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reader sees one complete version while versions are replaced.
func TestFindDuringInstall(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 5000))
	wheel := filepath.Join(t.TempDir(), "x.whl")
	require.NoError(t, os.WriteFile(wheel, one.wheel, 0o600))
	o := Options{Root: t.TempDir(), From: wheel, Force: true, table: []Wheel{one.Wheel}}
	_, err := Install(t.Context(), "toy", o)
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		defer close(done)
		for range 50 {
			if _, err := Install(context.Background(), "toy", o); err != nil {
				done <- err
			}
		}
	}()
	looks, paths := 0, make(map[string]bool)
	for {
		select {
		case err, more := <-done:
			require.NoError(t, err)
			if !more {
				t.Logf("%d looks saw %d versions", looks, len(paths))
				return
			}
		default:
		}
		p, err := find(t.Context(), "toy", o.Root, o, quick)
		require.NoError(t, err)
		looks, paths[p.Path] = looks+1, true
	}
}
