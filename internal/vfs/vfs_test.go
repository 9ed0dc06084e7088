package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/internal/vfs"
)

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

func TestMkdirAllKeepsWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	require.NoError(t, vfs.MkdirAll(dir))
	require.NoError(t, vfs.MkdirAll(dir))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorIs(t, vfs.MkdirAll(file), syscall.ENOTDIR)
	require.ErrorIs(t, vfs.MkdirAll(filepath.Join(file, "d")), syscall.ENOTDIR)
}
