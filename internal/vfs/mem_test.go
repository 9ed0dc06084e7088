package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// result returns a text that two file systems must agree on: errors by what a caller can ask about them.
func result(value any, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is not there"
	case errors.Is(err, fs.ErrExist):
		return "is there"
	case err != nil:
		return "fails"
	}
	return fmt.Sprint(value)
}

func TestOSAndMemAgree(t *testing.T) {
	folders, calls := 0, 0
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		folders++
		dir := filepath.Join(root, fmt.Sprint(folders))
		require.NoError(t, vfs.MkdirAll(dir))
		real, err := vfs.OS(dir)
		require.NoError(t, err)
		defer real.Close()
		both := [2]vfs.FS{real, &vfs.Mem{}}
		locks := [2]map[string]io.Closer{{}, {}}
		name := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", ".c", ".."}), 1, 3), func(p []string) string { return strings.Join(p, "/") })
		operations := map[string]func(a, b, text string, i int) (any, error){
			"write":   func(a, _, text string, i int) (any, error) { return nil, write(both[i], a, text) },
			"read":    func(a, _, _ string, i int) (any, error) { return read(both[i], a) },
			"rename":  func(a, b, _ string, i int) (any, error) { return nil, both[i].Rename(a, b) },
			"remove":  func(a, _, _ string, i int) (any, error) { return nil, both[i].Remove(a) },
			"mkdir":   func(a, _, _ string, i int) (any, error) { return nil, both[i].Mkdir(a) },
			"readdir": func(a, _, _ string, i int) (any, error) { return both[i].ReadDir(a) },
			"stat":    func(a, _, _ string, i int) (any, error) { return both[i].Stat(a) },
			"syncdir": func(a, _, _ string, i int) (any, error) { return nil, both[i].SyncDir(a) },
			"root":    func(_, _, _ string, i int) (any, error) { return both[i].ReadDir(".") },
			"lock": func(a, _, text string, i int) (any, error) {
				l, err := both[i].Lock(a, text)
				if locked := (*vfs.LockedError)(nil); errors.As(err, &locked) {
					return "locked: " + locked.Note, nil
				} else if err != nil {
					return nil, err
				}
				locks[i][a] = l
				return "mine", nil
			},
			"unlock": func(a, _, _ string, i int) (any, error) {
				l := locks[i][a]
				if l == nil {
					return "none", nil
				}
				delete(locks[i], a)
				return "done", l.Close()
			},
		}
		actions := map[string]func(*rapid.T){}
		for op, do := range operations {
			actions[op] = func(t *rapid.T) {
				calls++
				a, b, text := name.Draw(t, "a"), name.Draw(t, "b"), rapid.StringN(0, 8, -1).Draw(t, "text")
				require.Equal(t, result(do(a, b, text, 0)), result(do(a, b, text, 1)), "%s %s %s", op, a, b)
			}
		}
		t.Repeat(actions)
		for _, l := range locks[0] {
			require.NoError(t, l.Close())
		}
	})
	t.Logf("%d calls, the same answers", calls)
}
