package launch

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/lazo-ml/lazo/internal/vfs"
)

const (
	folders = "lazo-run-*"
	// lockName is mpirun's output, a file and not a pipe (docs/decisions/0034), locked until `lazo run` and mpirun end.
	lockName = "said"
	// A younger folder may not be locked yet.
	leastAge = time.Minute
)

// makeFolder also removes the folders of this user's killed starts.
func makeFolder() (dir string, said *os.File, err error) {
	removeLeft()
	if dir, err = os.MkdirTemp("", folders); err != nil {
		return "", nil, err
	}
	if said, err = os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	_, _ = vfs.TryLock(said) // where files cannot be locked, removeLeft removes nothing
	return dir, said, nil
}

func removeLeft() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), folders)) // the pattern is right
	for _, dir := range found {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && own(info) && left(filepath.Join(dir, lockName)) {
			_ = os.RemoveAll(dir) // the next start tries again
		}
	}
}

func left(lock string) bool {
	file, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || time.Since(info.ModTime()) < leastAge {
		return false
	}
	taken, err := vfs.TryLock(file)
	return err == nil && !taken
}
