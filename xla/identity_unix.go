//go:build unix

package xla

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

func identityOf(path string) (identity, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return identity{}, fmt.Errorf("xla: %w", &os.PathError{Op: "stat", Path: path, Err: err})
	}
	return identity{Path: path, Size: s.Size, Modified: time.Unix(s.Mtim.Unix()).UnixNano(), Changed: time.Unix(s.Ctim.Unix()).UnixNano(),
		Device: uint64(s.Dev), Inode: uint64(s.Ino), MinMinor: pjrt.MinMinor}, nil // types differ between systems
}
