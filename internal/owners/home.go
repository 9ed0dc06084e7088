// Package owners checks that only the user or root can have written code that lazo loads or runs: see docs/security.md.
package owners

import (
	"errors"
	"fmt"
	"os"
	users "os/user"
	"path/filepath"
	"runtime"
)

// Home returns the user's home folder: $HOME, or else the user database's. A relative one is an error.
func Home() (string, error) { return absolute("$HOME", home) }

func Plugins() (string, error) {
	dir := os.Getenv("LAZO_HOME")
	if dir == "" {
		return "", nil
	}
	return absolute("$LAZO_HOME", func() (string, error) { return dir, nil })
}

func Cache() (string, error) {
	return absolute("$HOME and $XDG_CACHE_HOME", func() (string, error) {
		dir, err := os.UserCacheDir()
		if _, unset := os.UserHomeDir(); err == nil || unset == nil {
			return dir, err
		}
		dir, err = home()
		if runtime.GOOS == "darwin" {
			return filepath.Join(dir, "Library", "Caches"), err
		}
		return filepath.Join(dir, ".cache"), err
	})
}

func home() (string, error) {
	dir, err := os.UserHomeDir()
	if err == nil {
		return dir, nil
	}
	known, missing := users.Current()
	if missing != nil || known.HomeDir == "" {
		return "", errors.Join(err, missing)
	}
	return known.HomeDir, nil
}

func absolute(from string, find func() (string, error)) (string, error) {
	dir, err := find()
	if err == nil && !filepath.IsAbs(dir) {
		err = fmt.Errorf("%q of %s is not an absolute path", dir, from)
	}
	if err != nil {
		return "", err
	}
	return dir, nil
}

// ErrUnsafe: another user may have written or may replace a file.
var ErrUnsafe = errors.New("not yours alone")
