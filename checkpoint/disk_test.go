package checkpoint_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

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
