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

#ifdef __linux__
#include <link.h>
#include <sys/auxv.h>

static int lazo_static(void) {
	const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	for (unsigned long i = 0; header && i < getauxval(AT_PHNUM); i++)
		if (header[i].p_type == PT_INTERP) return 0;
	return header != 0;
}
#else
static int lazo_static(void) { return 0; }
#endif

static const lazo_pjrt_table *lazo_call(void *get_api) {
	return ((lazo_get_pjrt_api)get_api)();
}
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Cgo reports whether this program can load plugins.
const Cgo = true

// Inspect loads the library at path and returns its API version. The library stays loaded: XLA plugins do not survive
// unloading.
//
// An unsupported version comes with an [*ABIError]. Other errors match [ErrNotFound], [ErrNotLoadable],
// [ErrOutOfMemory], [ErrNoSymbol] or [ErrNoTable]. A damaged library may crash or hang the process.
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

// CanLoad returns [ErrStatic] in a statically linked program, in which glibc's dlopen crashes.
func CanLoad() error {
	if C.lazo_static() != 0 {
		return ErrStatic
	}
	return nil
}

func open(path string) (*C.lazo_pjrt_table, error) {
	if err := CanLoad(); err != nil {
		return nil, fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, err)
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_LAZY|C.RTLD_LOCAL)
	if handle == nil {
		said, kind := C.GoString(C.dlerror()), ErrNotLoadable
		if strings.Contains(said, "failed to map segment") || strings.Contains(said, "annot allocate memory") { // the file itself was checked
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
	// A shorter table has no version.
	if v.StructSize >= int(unsafe.Sizeof(*table)) {
		v.Major, v.Minor = int(table.version.major_version), int(table.version.minor_version)
	}
	return v
}

// DieBySignal makes fatal signals end this process at once, without panic, trace or core file: a parent sees the cause.
func DieBySignal() { C.lazo_die_by_signal() }
