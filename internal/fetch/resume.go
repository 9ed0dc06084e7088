package fetch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/internal/vfs"
)

const (
	incomplete = ".incomplete"
	lookEvery  = 100 * time.Millisecond
)

// Resume downloads f to path, whose folder must exist, unless a file of its size and digest is there. After an error,
// path with ".incomplete" has the received bytes, and the next call requests the others, if f has a Size. Processes
// wait for each other.
func (c Client) Resume(ctx context.Context, f File, path string) (err error) {
	c = c.withDefaults()
	defer func() { err = f.explain(err) }()
	out, err := c.lock(ctx, f, path)
	if out == nil || err != nil {
		return ExplainFullDisk(err, filepath.Dir(path))
	}
	if err := errors.Join(c.resume(ctx, f, out), out.Close()); err != nil {
		return ExplainFullDisk(err, filepath.Dir(path))
	}
	return os.Rename(out.Name(), path)
}

func (c Client) resume(ctx context.Context, f File, out *os.File) error {
	sum, want, err := f.digest()
	if err != nil {
		return err
	}
	done, err := io.Copy(sum, out)
	if err != nil {
		return err
	}
	if done >= f.Size {
		if done > 0 && judge(done, hex.EncodeToString(sum.Sum(nil)), f.Size, want) == nil {
			return nil
		}
		if err := again(out); err != nil {
			return err
		}
		if sum, _, err = f.digest(); err != nil {
			return err
		}
		done = 0
	}
	return c.receive(ctx, f, out, sum, done)
}

func again(out *os.File) error {
	_, err := out.Seek(0, io.SeekStart)
	return errors.Join(err, out.Truncate(0))
}

// nil: path is complete
func (c Client) lock(ctx context.Context, f File, path string) (*os.File, error) {
	var wrong os.FileInfo
	for {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == f.Size && !os.SameFile(info, wrong) {
			right, err := f.same(path)
			if right || err != nil {
				return nil, err
			}
			wrong = info
		}
		if info, err := os.Lstat(path + incomplete); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s is a symbolic link, expected a file: remove it", path+incomplete)
		}
		out, err := regular.Open(path+incomplete, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		taken, err := vfs.TryLock(out)
		if err == nil && !taken {
			var mine, there os.FileInfo // another process may have renamed it since
			if mine, err = out.Stat(); err == nil {
				if there, err = os.Lstat(out.Name()); err == nil && os.SameFile(mine, there) {
					return out, nil
				}
			}
		}
		if err = errors.Join(err, out.Close()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process downloads it: %w", context.Cause(ctx))
		case <-time.After(lookEvery):
		}
	}
}

func (f File) same(path string) (bool, error) {
	sum, want, err := f.digest()
	if err != nil {
		return false, err
	}
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)) == want, err
}
