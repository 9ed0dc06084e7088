package launch_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// S54: a start removes the folders of killed ones, and no other: not one that is locked, new or without a lock, and not
// the target of a link.
func TestS54_foldersOfKilledStarts(t *testing.T) {
	place := t.TempDir()
	t.Setenv("TMPDIR", place)
	folder := func(name string, age time.Duration) (lock string) {
		dir := filepath.Join(place, name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		lock = filepath.Join(dir, "said")
		require.NoError(t, os.WriteFile(lock, nil, 0o600))
		require.NoError(t, os.Chtimes(lock, time.Time{}, time.Now().Add(-age)))
		return lock
	}
	folder("lazo-run-killed", time.Hour)
	folder("lazo-run-new", 0)
	folder("target", time.Hour)
	require.NoError(t, os.Symlink("target", filepath.Join(place, "lazo-run-link")))
	require.NoError(t, os.Mkdir(filepath.Join(place, "lazo-run-bare"), 0o700))
	locked, err := os.OpenFile(folder("lazo-run-locked", time.Hour), os.O_RDWR, 0)
	require.NoError(t, err)
	defer locked.Close()
	taken, err := vfs.TryLock(locked)
	require.NoError(t, err)
	require.False(t, taken)
	names := func() (list []string) {
		found, err := filepath.Glob(filepath.Join(place, "*"))
		require.NoError(t, err)
		for _, path := range found {
			list = append(list, filepath.Base(path))
		}
		return list
	}
	kept := []string{"lazo-run-bare", "lazo-run-link", "lazo-run-locked", "lazo-run-new", "target"}
	// A second start leaves the folder of the first one, which runs.
	o := shell(`touch -d "1 hour ago" $LAZO_RUN/said; touch ` + place + `/ready; while [ -e ` + place + `/ready ]; do sleep 0.05; done; [ -e $LAZO_RUN/said ]`)
	o.N = 1
	first := make(chan error, 1)
	go func() { first <- launch.Run(t.Context(), o) }()
	require.Eventually(t, func() bool { _, err := os.Stat(place + "/ready"); return err == nil }, time.Minute, time.Millisecond)
	second := shell("exit 0")
	second.N = 1
	require.NoError(t, launch.Run(t.Context(), second))
	require.Len(t, names(), len(kept)+2, "with the first one's folder and its note")
	require.NoError(t, os.Remove(place+"/ready"))
	require.NoError(t, <-first)
	require.Equal(t, kept, names())
	require.FileExists(t, filepath.Join(place, "target", "said"))
}
