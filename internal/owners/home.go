// Package owners checks that only the user or root can have written code that lazo loads or runs: see docs/security.md.
package owners

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Home returns the user's home folder. A relative one is an error, because it depends on the working directory.
func Home() (string, error) { return absolute("$HOME", os.UserHomeDir) }

// Cache returns the user's absolute cache folder.
func Cache() (string, error) { return absolute("$HOME and $XDG_CACHE_HOME", os.UserCacheDir) }

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

// ErrUnsafe means that another user may have written or may replace a file.
var ErrUnsafe = errors.New("not yours alone")
