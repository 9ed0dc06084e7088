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
	"github.com/lazo-ml/lazo/internal/pjrt"
)

type Library struct {
	path    string
	text    string
	flavour Flavour
	table   C.lazo_mpi
}

// opened is the process's only library: parts of two would find each other by global symbols.
var opened struct {
	sync.Mutex
	library *Library
	begun   bool // lazo initialized MPI
	world   *World
}

// Open loads the MPI library at path, or else the first one that fits the launcher: the file in LAZO_MPI, in the
// launcher's folder, in LD_LIBRARY_PATH, next to mpirun or mpiexec in PATH, or in system folders. A process has one
// library: the same file returns it, another [ErrTwice].
//
// The file and its parent folders must belong to the user or root, else Open returns [ErrNotFound] with the reason. It
// returns [ErrLauncher] for another implementation, or major version of Open MPI, than the launcher's.
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

func load(file string) (*Library, error) {
	if err := pjrt.CanLoad(); err != nil {
		return nil, fmt.Errorf("mpi: %s: %w: %w", file, ErrNotLoadable, err)
	}
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	var handle unsafe.Pointer
	// Open MPI's parts need its symbols in the global scope.
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
	var text [8192]C.char
	var length C.int
	if code := C.lazo_version(&l.table, &text[0], &length); code != 0 {
		return nil, fmt.Errorf("mpi: %s: %w: MPI_Get_library_version gave error %d", file, ErrNoMPI, code)
	}
	l.text = C.GoString(&text[0])
	if l.flavour == MPICH && !isMPICH.MatchString(l.text) { // unknown constants
		return nil, fmt.Errorf("mpi: %s: %w: it says %q; lazo knows Open MPI, MPICH, Intel MPI, MVAPICH and libraries named libmpi_abi", file, ErrNoMPI, firstLine(l.text))
	}
	return l, nil
}

func symbol(handle unsafe.Pointer, name string) bool {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.dlsym(handle, text) != nil
}

func (l *Library) Path() string { return l.path }

func (l *Library) Version() string {
	name, version := l.implementation()
	return strings.TrimSpace(name + " " + version)
}

func (l *Library) implementation() (name, version string) {
	for _, v := range versionTexts {
		if m := v.text.FindStringSubmatch(l.text); m != nil {
			return v.name, m[1]
		}
	}
	return firstLine(l.text), ""
}

func (l *Library) Flavour() Flavour { return l.flavour }

func (l *Library) words(r C.lazo_result, format string, args ...any) error {
	if r.name == nil {
		return nil
	}
	var text [8192]C.char
	C.lazo_error_text(&l.table, r.code, &text[0], C.size_t(len(text)))
	return fmt.Errorf("mpi: %s: %s: %s", fmt.Sprintf(format, args...), C.GoString(r.name), C.GoString(&text[0]))
}

func (by launcher) check(l *Library) error {
	name, version := l.implementation()
	major, _, _ := strings.Cut(version, ".")
	if by.fits(name == "Open MPI", major) {
		return nil
	}
	return fmt.Errorf("mpi: %s is %s: %w: this process was started by %s: start it by the mpirun of the library, or name the other library by LAZO_MPI",
		l.path, l.Version(), ErrLauncher, by.name)
}
