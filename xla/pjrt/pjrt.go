package pjrt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The versions of PJRT's C API that lazo works with: major version 0, from the
// oldest minor version that was tested. Newer minor versions only add to the
// table, so they are accepted.
const (
	Major    = 0
	MinMinor = 81
	// MinTableSize is the size in bytes of the table at 0.81: a shorter one
	// lacks functions that lazo calls.
	MinTableSize = 984
)

// What can be wrong with a plugin. Errors of [Inspect] wrap one of these.
var (
	ErrNotFound    = errors.New("no such plugin file")
	ErrNotLoadable = errors.New("not a shared library that this machine can load")
	ErrNoSymbol    = errors.New("not a PJRT plugin: it exports no GetPjrtApi")
	ErrNoTable     = errors.New("GetPjrtApi gave no API table")
	ErrABI         = errors.New("PJRT API version not supported")
	// ErrNoCgo: the program was built without cgo, and no plugin can be loaded.
	ErrNoCgo = errors.New("this program was built without cgo, which plugins need: build it with CGO_ENABLED=1 and a C compiler")
)

// Version is what a plugin says of its API table.
type Version struct {
	Major, Minor int
	// StructSize is the size of the table in bytes.
	StructSize int
}

// String gives the version as the PJRT documents write it, "0.81".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// ABIError says that a plugin speaks a version of the API that lazo does not.
// It matches [ErrABI].
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

// Is makes errors.Is(err, ErrABI) hold.
func (e *ABIError) Is(target error) bool { return target == ErrABI }

// Check tells whether lazo can work with a plugin at path that has version v.
// The error is nil or an [*ABIError].
func (v Version) Check(path string) error {
	if v.Major != Major || v.Minor < MinMinor || v.StructSize < MinTableSize {
		return &ABIError{Path: path, Got: v}
	}
	return nil
}

// checkFile finds what can be found without running the file: dlopen's own
// messages are unclear, and a cut file loads and then dies on first touch.
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("pjrt: %s: %w", path, ErrNotFound)
	case err != nil:
		return fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, err)
	case !info.Mode().IsRegular(): // opening a pipe would wait for ever
		return fmt.Errorf("pjrt: %s: %w: it is not a regular file (%s)", path, ErrNotLoadable, info.Mode().Type())
	}
	file, err := os.Open(path) // the path is the caller's choice; probe and xla say when it is to be trusted
	if err != nil {
		return fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, err)
	}
	defer file.Close()
	if err := checkFormat(file, info.Size()); err != nil {
		return fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, err)
	}
	return nil
}
