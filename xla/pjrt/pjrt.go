package pjrt

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "table.h"

static void lazo_die_by_signal(void) {
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
	const struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) signal(fatal[i], SIG_DFL);
}

static const lazo_pjrt_table *lazo_call(void *get_api) {
	return ((lazo_get_pjrt_api)get_api)();
}
*/
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unsafe"
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

// Inspect loads the library at path, asks it for its API table and reads the
// version. The library stays loaded: XLA plugins do not survive unloading.
//
// A version that lazo does not support comes with an [*ABIError] beside it.
// Other errors wrap [ErrNotFound], [ErrNotLoadable], [ErrOutOfMemory],
// [ErrNoSymbol] or [ErrNoTable]. A damaged library may crash or hang the process instead.
func Inspect(path string) (Version, error) {
	if err := checkFile(path); err != nil {
		return Version{}, err
	}
	table, err := open(path)
	if err != nil {
		return Version{}, err
	}
	v := versionOf(table)
	return v, v.Check(path)
}

// open loads the library at path, or finds it loaded, and asks it for its table.
func open(path string) (*C.lazo_pjrt_table, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_LAZY|C.RTLD_LOCAL)
	if handle == nil {
		said, kind := C.GoString(C.dlerror()), ErrNotLoadable
		if strings.Contains(said, "failed to map segment") || strings.Contains(said, "annot allocate memory") { // the file is whole, as its headers say
			kind = ErrOutOfMemory
		}
		return nil, fmt.Errorf("pjrt: %s: %w: %s", path, kind, said)
	}
	symbol := C.CString("GetPjrtApi")
	defer C.free(unsafe.Pointer(symbol))
	getAPI := C.dlsym(handle, symbol)
	if getAPI == nil {
		return nil, fmt.Errorf("pjrt: %s: %w", path, ErrNoSymbol)
	}
	table := C.lazo_call(getAPI)
	if table == nil {
		return nil, fmt.Errorf("pjrt: %s: %w", path, ErrNoTable)
	}
	return table, nil
}

func versionOf(table *C.lazo_pjrt_table) Version {
	v := Version{StructSize: int(table.struct_size)}
	// A table that ends before its version has none to read.
	if v.StructSize >= int(unsafe.Sizeof(*table)) {
		v.Major, v.Minor = int(table.version.major_version), int(table.version.minor_version)
	}
	return v
}

// DieBySignal makes this process die of a fatal signal at once and silently: no Go panic, no traces, no core file. It
// is for a process that only tries a plugin, so that its parent can read the cause from the exit status.
func DieBySignal() { C.lazo_die_by_signal() }

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
