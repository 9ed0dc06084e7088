//go:build unix

package owners

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/internal/regular"
)

// Resolve returns a path without links, or [ErrUnsafe] if others can write to a part of it (docs/security.md). A
// missing part is fs.ErrNotExist.
func Resolve(path string) (string, error) { return now().resolve(path) }

// Folder is [Resolve] for lazo's own folders, which must not be sticky: files are found by name.
func Folder(path string) error {
	real, err := Resolve(path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(real)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s: %w", real, syscall.ENOTDIR)
	}
	return now().closed(real, info, false)
}

// Own applies the rule to one file, folder or link.
func Own(path string, info fs.FileInfo) error { return now().closed(path, info, false) }

// ReadFile reads a regular file of at most limit bytes after [Resolve] of its folder. It never blocks, as on a pipe,
// and refuses a final link.
func ReadFile(path string, limit int64) ([]byte, error) {
	if _, err := Resolve(filepath.Dir(path)); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file but %v", path, info.Mode().Type())
	}
	if err := Own(path, info); err != nil {
		return nil, err
	}
	return regular.ReadAll(file, limit)
}

type user struct {
	uid     uint32
	root    uint32
	private func(path string, gid int) bool
}

func now() user {
	u := user{uid: uint32(os.Geteuid())}
	if info, err := os.Lstat("/"); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			u.root = stat.Uid
		}
	}
	u.private = func(path string, gid int) bool { return private(path, gid, u.uid) }
	return u
}

const mostLinks = 40

func (u user) resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	at, rest, links := "/", strings.Split(path, "/"), 0
	if err := u.look("/"); err != nil {
		return "", err
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..": // the parent was checked
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if err := u.closed(next, info, true); err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > mostLinks {
			return "", &fs.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(target, "/") {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}

func (u user) look(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return u.closed(path, info, true)
}

// sticky allows sticky folders that others can write.
func (u user) closed(path string, info fs.FileInfo, sticky bool) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s is %w: its owner cannot be checked on this system", path, ErrUnsafe)
	}
	if stat.Uid != u.uid && stat.Uid != 0 && stat.Uid != u.root {
		return fmt.Errorf("%s is %w: it belongs to user %d, expected you (%d) or root: copy it to a folder that you own, or chown it", path, ErrUnsafe, stat.Uid, u.uid)
	}
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0: // links have no own mode
	case sticky && mode.IsDir() && mode&fs.ModeSticky != 0:
	case mode&0o002 != 0:
		return fmt.Errorf("%s is %w: every user may write to it (%v): check its content, then chmod o-w %s", path, ErrUnsafe, mode, path)
	case mode&0o020 != 0 && !u.private(path, int(stat.Gid)):
		return fmt.Errorf("%s is %w: group %d may write to it (%v): check its content, then chmod g-w %s", path, ErrUnsafe, stat.Gid, mode, path)
	}
	return nil
}
