package checkpoint_test

import (
	"errors"
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

func TestF05_eachCallFails(t *testing.T) {
	before := saved(t, 1, 2)
	tried, failed, unpruned, passed := 0, 0, 0, 0
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EACCES} {
		for _, on := range []bool{false, true} {
			for k := 1; ; k++ {
				m := before.Crash(1, nil)
				rule := &failing{n: k, on: on, err: errno}
				counted := vfs.Count(m)
				f := openMem(t, vfs.Hook(counted, rule.before), checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}})
				rule.armed = true
				err := f.Save(t.Context(), 3, content(3))
				rule.armed = false
				if len(rule.hit) == 0 {
					require.NoError(t, err)
					break
				}
				tried++
				where := fmt.Sprintf("%v at call %d, on %v: %v: %v", errno, k, on, rule.hit[0], err)
				safe := err == nil || errors.Is(err, checkpoint.ErrNotPruned)
				switch {
				case err == nil:
					passed++
				case safe:
					unpruned++
				default:
					failed++
				}
				if err != nil {
					require.ErrorIs(t, err, errno, where)
				}
				require.EqualValues(t, 1, counted.Handles(), "%s: only the lock is open", where)
				if safe {
					c, err := openMem(t, m.Crash(0, nil), checkpoint.Options{}).Newest(t.Context())
					require.NoError(t, err, where)
					require.Equal(t, 3, version(t, c), where)
				} else {
					require.Subset(t, steps(t, f), []checkpoint.Step{1, 2}, "%s: what was there is intact", where)
					for _, s := range []checkpoint.Step{1, 2} {
						require.NoError(t, f.Verify(t.Context(), s), where)
					}
					if !on {
						require.Equal(t, []checkpoint.Step{1, 2}, steps(t, f), where)
						require.Empty(t, leftovers(t, m), where)
					}
				}
				require.NoError(t, f.Save(t.Context(), 4, content(4)), "%s: training goes on", where)
				require.Empty(t, leftovers(t, m), where)
				require.NoError(t, f.Close())
			}
		}
	}
	require.Positive(t, failed)
	require.Positive(t, unpruned)
	t.Logf("F05: %d calls failed: %d saves refused, %d saved but not pruned, %d saved all the same; 0 errors lost, 0 older steps lost", tried, failed, unpruned, passed)
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
