package checkpoint_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// One that cannot restore, or finds another folder, is an error of all.
func TestJob_resumeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &vfs.Mem{}
		f := openMem(t, disk, checkpoint.Options{})
		_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(loop.Steps(9)), f.Resume(checkpoint.Every(loop.Steps(5))))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		errs := together(3, func(rank int, state *cut) error {
			own := disk
			if rank == 1 {
				own = &vfs.Mem{}
			}
			f := openMem(t, own, checkpoint.Options{ReadOnly: rank > 0})
			result, _, err := run(t.Context(), cutLoop, state, f.Resume(), loop.Until(loop.Steps(20)))
			require.Zero(t, result.Elapsed.Steps, "rank %d", rank)
			return errors.Join(err, f.Close())
		})
		require.ErrorContains(t, errs[1], "the folder must be the same for all processes")
		require.ErrorContains(t, errs[0], "rank 1 could not restore the checkpoint")
		require.ErrorContains(t, errs[2], "rank 1 could not restore the checkpoint")
	})
}

// A full disk of one rank ends the run everywhere, with its error, and complete checkpoints stay.
func TestJob_fullDiskOfAnother(t *testing.T) {
	for n := range int64(9) {
		synctest.Test(t, func(t *testing.T) {
			disk := &vfs.Mem{}
			begin := time.Now()
			full := vfs.Fail(disk, vfs.Rule{Op: vfs.OpWrite, Name: "*/rank-*.safetensors.part", N: n + 1, On: true, Err: syscall.ENOSPC})
			if n%2 > 0 {
				full = vfs.Fail(disk, vfs.Rule{Op: vfs.OpWrite, N: n + 1, On: true, Err: syscall.ENOSPC}, vfs.Rule{Op: vfs.OpCreate, N: n + 2, On: true, Err: syscall.ENOSPC})
			}
			errs := together(3, func(rank int, state *cut) error {
				fs := vfs.FS(disk)
				if rank == 2 {
					fs = full
				}
				f := openMem(t, fs, checkpoint.Options{ReadOnly: rank > 0})
				slow := loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { time.Sleep(time.Second); return nil })
				_, _, err := run(t.Context(), cutLoop, state, loop.Until(loop.Steps(200)), slow, f.Resume(checkpoint.Every(loop.Steps(5))))
				return err
			})
			require.ErrorIs(t, errs[2], syscall.ENOSPC)
			for _, err := range errs[:2] {
				require.ErrorContains(t, err, "rank 2")
				if n%2 == 0 || !strings.Contains(err.Error(), "see the error of") { // a mark has no text on a disk that is full
					require.ErrorContains(t, err, "no space left on device")
				}
			}
			require.Less(t, time.Since(begin), 4*time.Minute, "nobody waits in vain")
			f := openMem(t, disk, checkpoint.Options{ReadOnly: true})
			c, err := f.Newest(t.Context())
			if err != nil {
				require.ErrorIs(t, err, checkpoint.ErrNone)
			} else {
				require.Zero(t, c.Step%5)
				require.NotEmpty(t, steps(t, f))
			}
			names, err := disk.ReadDir(".")
			require.NoError(t, err)
			for _, name := range names {
				require.NotContains(t, name, ".tmp-", "rank 0 has given the space back")
			}
		})
	}
}

// A rank that sees another folder of the name, even an older copy of rank 0's, gets an error before the first step.
func TestJob_seesTwoFolders(t *testing.T) {
	dir := t.TempDir()
	f, err := checkpoint.Open(filepath.Join(dir, "one"), checkpoint.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(filepath.Join(dir, "one"))))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	for _, other := range []string{"copy", "empty"} {
		errs := together(3, func(rank int, state *cut) error {
			name := "one"
			if rank == 1 {
				name = other
			}
			_, _, err := run(t.Context(), cutLoop, state, checkpoint.Resume(filepath.Join(dir, name)), loop.Until(loop.Steps(20)))
			require.Zero(t, state.Weight)
			return err
		})
		require.ErrorContains(t, errs[1], "sees another folder of that name than rank 0")
		for _, rank := range []int{0, 2} {
			require.ErrorContains(t, errs[rank], "rank 1 could not see the folder")
		}
	}
}
