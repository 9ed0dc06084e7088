// Package regular opens only regular files: a named pipe may block without end, regardless of a context.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Err: the path is not a regular file. It matches EINVAL.
var Err error = irregular{}

type irregular struct{}

func (irregular) Error() string        { return "is not a regular file" }
func (irregular) Is(target error) bool { return target == syscall.EINVAL }

// Open is [os.OpenFile] for regular files. It checks before it opens.
func Open(path string, how int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		kind := info.Mode().Type().String()
		if info.IsDir() {
			kind += ": a folder, expected a file"
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w (%s)", Err, kind)}
	}
	return os.OpenFile(path, how, mode) // or Stat's error
}

// Read is [os.ReadFile] for regular files of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// ReadAll reads an open file to its end, with an error above limit bytes.
func ReadAll(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() <= limit {
		text, err := io.ReadAll(io.LimitReader(f, limit+1))
		if err != nil || int64(len(text)) <= limit {
			return text, err
		}
	}
	return nil, fmt.Errorf("%s has %d bytes, expected at most %d", f.Name(), info.Size(), limit)
}

func Write(path string, text []byte, mode fs.FileMode) error {
	f, err := Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Replace writes a file by another name in its folder, flushes it to the disk, and renames it. Others may read it.
func Replace(path string, write func(*os.File) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("it is a folder, expected the name of a file in one, as weights.safetensors")
	}
	if path == "" {
		return errors.New("the name of the file is empty")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".saving-*")
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		return fmt.Errorf("a file in the folder %s: %w", filepath.Dir(path), of.Err)
	}
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
