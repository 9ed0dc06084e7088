package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/vfs"
)

func open(t *testing.T) vfs.FS {
	t.Helper()
	fsys, err := vfs.OS(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	return fsys
}

func write(fsys vfs.FS, name, text string) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Sync(), f.Close())
}

func read(fsys vfs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	size, err := f.Size()
	if err != nil {
		return "", errors.Join(err, f.Close())
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	return string(text), errors.Join(err, f.Close())
}

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

func TestOpenTakesRegularFilesAlone(t *testing.T) {
	dir := t.TempDir()
	fsys, err := vfs.OS(dir)
	require.NoError(t, err)
	defer fsys.Close()
	require.NoError(t, write(fsys, "file", "text"))
	require.NoError(t, fsys.Mkdir("dir"))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "out")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for _, c := range []struct {
		name string
		want error
	}{
		{"file", nil},
		{"dir", syscall.EISDIR},
		{"link", syscall.EINVAL},
		{"pipe", syscall.EINVAL},
		{"none", fs.ErrNotExist},
		{"../file", fs.ErrInvalid},
		{"/etc/passwd", fs.ErrInvalid},
		{"a\x00b", syscall.EINVAL},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(fsys, c.name)
			require.ErrorIs(t, err, c.want)
			if c.want != nil {
				_, err = fsys.Lock(c.name, "")
				if c.want != fs.ErrNotExist {
					require.ErrorIs(t, err, c.want)
				}
				if c.name == "pipe" {
					require.EqualError(t, err, "open pipe: is not a regular file")
				}
			}
		})
	}
	_, err = read(fsys, "out/passwd")
	require.Error(t, err, "a link out of the folder")
}

func TestLockEndsWithClose(t *testing.T) {
	for _, c := range []struct {
		name string
		fsys vfs.FS
	}{{"os", open(t)}, {"mem", &vfs.Mem{}}} {
		t.Run(c.name, func(t *testing.T) {
			first, err := c.fsys.Lock("LOCK", "a long note of the first")
			require.NoError(t, err)
			_, err = c.fsys.Lock("LOCK", "second")
			var locked *vfs.LockedError
			require.ErrorAs(t, err, &locked)
			require.Equal(t, "a long note of the first", locked.Note)
			require.NoError(t, first.Close())
			require.ErrorIs(t, first.Close(), fs.ErrClosed)
			third, err := c.fsys.Lock("LOCK", "third")
			require.NoError(t, err)
			note, err := read(c.fsys, "LOCK")
			require.NoError(t, err)
			require.Equal(t, "third", note)
			require.NoError(t, third.Close())
		})
	}
}

func TestMkdirAllKeepsWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	require.NoError(t, vfs.MkdirAll(dir))
	require.NoError(t, vfs.MkdirAll(dir))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorIs(t, vfs.MkdirAll(file), syscall.ENOTDIR)
	require.ErrorIs(t, vfs.MkdirAll(filepath.Join(file, "d")), syscall.ENOTDIR)
}
