package pjrt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The supported versions of PJRT's C API: from the oldest tested minor version. Newer ones extend the table.
const (
	Major    = 0
	MinMinor = 81
	// MinTableSize is the size of the 0.81 table in bytes.
	MinTableSize = 984
)

var (
	ErrNotFound    = errors.New("no such plugin file")
	ErrNotLoadable = errors.New("not a shared library that this machine can load")
	ErrNoSymbol    = errors.New("not a PJRT plugin: it exports no GetPjrtApi")
	ErrNoTable     = errors.New("GetPjrtApi gave no API table")
	ErrABI         = errors.New("PJRT API version not supported")
	ErrStatic      = errors.New("this program is statically linked, and plugins need a dynamic one: build it without -static in -ldflags or CGO_LDFLAGS")
	ErrNoCgo       = errors.New("this program was built without cgo, which plugins need: build it with CGO_ENABLED=1 and a C compiler")
)

type Version struct {
	Major, Minor int
	// StructSize is in bytes.
	StructSize int
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

type ABIError struct {
	Path string
	Got  Version
}

func (e *ABIError) Error() string {
	advice := "install the plugin that this lazo was tested with (lazo install)"
	if e.Got.Major > Major {
		advice = "use a newer lazo, or " + advice
	}
	return fmt.Sprintf("pjrt: %s: %v: the plugin has %v (table of %d bytes), lazo needs %d.%d or a newer %d.x (at least %d bytes): %s",
		e.Path, ErrABI, e.Got, e.Got.StructSize, Major, MinMinor, Major, MinTableSize, advice)
}

func (e *ABIError) Is(target error) bool { return target == ErrABI }

// Check returns an [*ABIError] if lazo does not support v, of the plugin at path.
func (v Version) Check(path string) error {
	if v.Major != Major || v.Minor < MinMinor || v.StructSize < MinTableSize {
		return &ABIError{Path: path, Got: v}
	}
	return nil
}

// checkFile runs first: dlopen's messages are unclear, and a truncated library crashes later.
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("pjrt: %s: %w", path, ErrNotFound)
	case err != nil:
		return fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, err)
	case !info.Mode().IsRegular(): // opening a pipe would block
		return fmt.Errorf("pjrt: %s: %w: it is not a regular file (%s)", path, ErrNotLoadable, info.Mode().Type())
	}
	file, err := os.Open(path) // the caller vouches for the path
	if err != nil {
		return fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, err)
	}
	defer file.Close()
	if err := checkFormat(file, info.Size()); err != nil {
		return fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, err)
	}
	return nil
}
