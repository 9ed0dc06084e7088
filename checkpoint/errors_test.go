package checkpoint_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// failing fails the calls from the n-th on, or the n-th alone, once it is armed.
type failing struct {
	n     int
	on    bool
	err   error
	armed bool
	calls int
	hit   []vfs.Call
}

func (f *failing) before(c vfs.Call) error {
	if !f.armed {
		return nil
	}
	if f.calls++; f.calls == f.n || f.on && f.calls > f.n {
		f.hit = append(f.hit, c)
		return fmt.Errorf("%s %s: %w", c.Op, c.Name, f.err)
	}
	return nil
}

// torn is a disk that writes another byte than the last one of the tensors.
type torn struct{ vfs.FS }

func (d torn) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	if err == nil && strings.HasSuffix(name, "safetensors") {
		f = tornFile{f}
	}
	return f, err
}

type tornFile struct{ vfs.File }

func (f tornFile) Write(p []byte) (int, error) {
	if len(p) == 700 { // one of the tensors
		p = slices.Clone(p)
		p[699] ^= 1
	}
	return f.File.Write(p)
}

func TestF05_eachCallOfOpenAndLoadFails(t *testing.T) {
	before := saved(t, 1, 2)
	require.NoError(t, before.Mkdir(".tmp-0123456789abcdef"))
	tried := 0
	for k := 1; ; k++ {
		m := before.Crash(1, nil)
		counted := vfs.Count(m)
		rule := &failing{n: k, err: syscall.EIO, armed: true}
		f, err := checkpoint.OpenFS(vfs.Hook(counted, rule.before), "folder", checkpoint.Options{Log: quiet})
		if err != nil {
			require.ErrorIs(t, err, syscall.EIO)
			require.Zero(t, counted.Handles())
			tried++
			continue
		}
		c, err := f.Newest(t.Context())
		if len(rule.hit) == 0 {
			require.NoError(t, err)
			break
		}
		tried++
		if err != nil {
			require.ErrorIs(t, err, syscall.EIO)
		} else {
			require.Contains(t, []int{1, 2}, version(t, c), "another one was loaded")
		}
		require.EqualValues(t, 1, counted.Handles())
	}
	t.Logf("F05: %d calls of Open and Newest failed: all errors are there, or another checkpoint", tried)
}

func TestF06_syncFails(t *testing.T) {
	before := saved(t, 1)
	tried := 0
	for k := 1; ; k++ {
		m := before.Crash(1, nil)
		var failed string
		syncs := 0
		hook := func(c vfs.Call) error {
			if failed != "" && !strings.HasPrefix(c.Name, ".tmp-") && c.Op != vfs.OpSyncDir && c.Op != vfs.OpReadDir {
				require.Equal(t, vfs.OpRename, c.Op, "%v after the sync of %s failed", c, failed) // taken back
			}
			if failed == c.Name && c.Name != "." {
				require.Contains(t, []vfs.Op{vfs.OpClose, vfs.OpRemove, vfs.OpStat, vfs.OpReadDir}, c.Op, "the file is not used again")
			}
			if c.Op != vfs.OpSync && c.Op != vfs.OpSyncDir {
				return nil
			}
			if syncs++; syncs == k {
				failed = c.Name
				return syscall.EIO
			}
			return nil
		}
		f := openMem(t, vfs.Hook(m, hook), checkpoint.Options{})
		err := f.Save(t.Context(), 2, content(2))
		if failed == "" {
			require.NoError(t, err)
			break
		}
		tried++
		require.ErrorIs(t, err, syscall.EIO)
		failed = ""
		require.Equal(t, []checkpoint.Step{1}, steps(t, f))
		require.Empty(t, leftovers(t, m))
	}
	require.Equal(t, 5, tried)
	t.Logf("F06: %d of %d syncs failed: 0 saves went on", tried, tried)
}

func TestF06_whatIsReadBackIsWrong(t *testing.T) {
	m := saved(t, 1)
	f := openMem(t, torn{m}, checkpoint.Options{})
	err := f.Save(t.Context(), 2, content(2))
	var damaged *checkpoint.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.ErrorContains(t, err, "read back")
	require.Equal(t, []checkpoint.Step{1}, steps(t, f))
	require.Empty(t, leftovers(t, m))
}
