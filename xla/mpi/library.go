package mpi

/*
#cgo linux LDFLAGS: -ldl
#cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O3
#include <dlfcn.h>
#include <stdlib.h>
#include "exchange.h"

static int lazo_version(const lazo_mpi *mpi, char *text, int *length) { return mpi->Get_library_version(text, length); }
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// Library is an MPI library that was loaded, for the life of the process.
type Library struct {
	path    string
	text    string
	flavour Flavour
	table   C.lazo_mpi
}

// opened is the library of this process: the names of two would mix, since their parts find each other by the names
// that all of the process see.
var opened struct {
	sync.Mutex
	library *Library
	begun   bool // MPI was initialized by lazo
}

// Open loads the MPI library at path. With an empty path it looks for one: in the file that LAZO_MPI names, where the
// launcher says that it is installed, in LD_LIBRARY_PATH, beside the mpirun or mpiexec in PATH, and in the system's
// folders; of several it takes the first that fits the launcher. A process has one library: another Open of the same
// file gives the same, one of another file is [ErrTwice].
//
// The file, and the folders that lead to it, must be the user's own or root's ([ErrNotFound] and what is unsafe
// otherwise). A library of another implementation, or another major version of Open MPI, than the launcher that
// started this process is [ErrLauncher]: MPI_Init would end the process or make each its own job.
func Open(path string) (*Library, error) {
	opened.Lock()
	defer opened.Unlock()
	by := launcherOf(os.Getenv)
	if path == "" {
		found, err := search(by, os.Getenv, os.DirFS("/"))
		if err != nil {
			return nil, err
		}
		path = found
	}
	file, err := owners.Resolve(path)
	if err != nil {
		return nil, fmt.Errorf("mpi: %s: %w: %w", path, ErrNotFound, err)
	}
	l := opened.library
	if l == nil {
		if l, err = load(file); err != nil {
			return nil, err
		}
		opened.library = l
	}
	if l.path != file {
		return nil, fmt.Errorf("mpi: %s: %w: with %s", file, ErrTwice, l.path)
	}
	if err := by.check(l); err != nil {
		return nil, err
	}
	return l, nil
}

// load loads a library and reads its version, which may be asked for before MPI is initialized.
func load(file string) (*Library, error) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	var handle unsafe.Pointer
	// Open MPI's parts look for its symbols in the whole process.
	pjrt.WithoutSignals(func() { handle = C.dlopen(name, C.RTLD_NOW|C.RTLD_GLOBAL) })
	if handle == nil {
		return nil, fmt.Errorf("mpi: %s: %w: %s", file, ErrNotLoadable, C.GoString(C.dlerror()))
	}
	l := &Library{path: file, flavour: MPICH}
	if symbol(handle, "ompi_mpi_comm_world") {
		l.flavour = OpenMPI
	} else if isABI(file) {
		l.flavour = ABI
	}
	if lacks := C.lazo_resolve(&l.table, handle, C.int(l.flavour)); lacks != nil {
		return nil, fmt.Errorf("mpi: %s: %w: it has no %s", file, ErrNoMPI, C.GoString(lacks))
	}
	var text [8192]C.char // the most that an implementation writes
	var length C.int
	if code := C.lazo_version(&l.table, &text[0], &length); code != 0 {
		return nil, fmt.Errorf("mpi: %s: %w: MPI_Get_library_version gave error %d", file, ErrNoMPI, code)
	}
	l.text = C.GoString(&text[0])
	if l.flavour == MPICH && !isMPICH.MatchString(l.text) { // its constants are not those of others
		return nil, fmt.Errorf("mpi: %s: %w: it says %q; lazo knows Open MPI, MPICH, Intel MPI, MVAPICH and libraries named libmpi_abi", file, ErrNoMPI, firstLine(l.text))
	}
	return l, nil
}

func symbol(handle unsafe.Pointer, name string) bool {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.dlsym(handle, text) != nil
}

// Path is the file of the library, absolute and without links.
func (l *Library) Path() string { return l.path }

// Version is the implementation and its version, "Open MPI 5.0.11".
func (l *Library) Version() string {
	name, version := l.implementation()
	return strings.TrimSpace(name + " " + version)
}

// implementation is what the library calls itself, or the first line of its words.
func (l *Library) implementation() (name, version string) {
	for _, v := range versionTexts {
		if m := v.text.FindStringSubmatch(l.text); m != nil {
			return v.name, m[1]
		}
	}
	return firstLine(l.text), ""
}

// Flavour is the library's binary interface.
func (l *Library) Flavour() Flavour { return l.flavour }

// words are MPI's for a result that is an error, nil for a good one.
func (l *Library) words(r C.lazo_result, format string, args ...any) error {
	if r.name == nil {
		return nil
	}
	var text [8192]C.char
	C.lazo_error_text(&l.table, r.code, &text[0], C.size_t(len(text)))
	return fmt.Errorf("mpi: %s: %s: %s", fmt.Sprintf(format, args...), C.GoString(r.name), C.GoString(&text[0]))
}

// check tells whether a library can work with the launcher.
func (by launcher) check(l *Library) error {
	name, version := l.implementation()
	major, _, _ := strings.Cut(version, ".")
	if by.fits(name == "Open MPI", major) {
		return nil
	}
	return fmt.Errorf("mpi: %s is %s: %w: this process was started by %s: start it by the mpirun of the library, or name the other library by LAZO_MPI",
		l.path, l.Version(), ErrLauncher, by.name)
}
