// Package owners tells whether code on disk can have been put there by its user, or root, alone. docs/security.md has
// the rule and its reasons. It is the one place that decides this, for whatever lazo loads or runs.
package owners

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Home is the user's home folder. One that is not absolute is refused: it would be another folder for each place that
// the program is started in.
func Home() (string, error) { return absolute("$HOME", os.UserHomeDir) }

// Cache is the user's folder for what can be made again, absolute too.
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

// ErrUnsafe: another user may have written a file, or may replace it by way of a folder or a link that leads to it.
var ErrUnsafe = errors.New("not yours alone")
