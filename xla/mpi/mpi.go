package mpi

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unsafe"
)

// What can be wrong with a library or a job.
var (
	// ErrNotFound: no MPI library where one was looked for.
	ErrNotFound = errors.New("no MPI library")
	// ErrNotLoadable: the file is no library of this machine, or needs others that are not there.
	ErrNotLoadable = errors.New("not a library that this machine can load")
	// ErrNoMPI: the file is a library, but not of an MPI that lazo knows.
	ErrNoMPI = errors.New("not an MPI library that lazo knows")
	// ErrLauncher: the process was started by the launcher of another implementation of MPI, or of another version.
	ErrLauncher = errors.New("the launcher is of another MPI")
	// ErrThreads: the library does not let several threads call it at once.
	ErrThreads = errors.New("the MPI library has no MPI_THREAD_MULTIPLE")
	// ErrTwice: MPI is initialized once in a process, and with one library.
	ErrTwice = errors.New("MPI is in use in this process already")
	// ErrFinalized: the process has left its job.
	ErrFinalized = errors.New("this process has left the job of MPI")
)

// Flavour is the binary interface of a library: how it hands over handles, and the values of its constants.
type Flavour int

// The flavours that lazo knows.
const (
	OpenMPI Flavour = iota + 1
	MPICH           // also Intel MPI and MVAPICH
	ABI             // the interface of MPI 5.0, which any implementation may have beside its own
)

// String names the flavour.
func (f Flavour) String() string {
	switch f {
	case OpenMPI:
		return "Open MPI"
	case MPICH:
		return "MPICH"
	case ABI:
		return "MPI 5 ABI"
	}
	return fmt.Sprintf("flavour %d", int(f))
}

var (
	isMPICH      = regexp.MustCompile(`MPICH|Intel\(R\) MPI|MVAPICH`)
	versionTexts = []struct {
		name string
		text *regexp.Regexp
	}{
		{"Open MPI", regexp.MustCompile(`Open MPI v([0-9][0-9A-Za-z.]*)`)},
		{"Intel MPI", regexp.MustCompile(`Intel\(R\) MPI Library ([0-9][0-9.]*)`)},
		{"MVAPICH", regexp.MustCompile(`MVAPICH\S* Version\s*:\s*([0-9][0-9A-Za-z.]*)`)},
		{"MPICH", regexp.MustCompile(`MPICH Version\s*:\s*([0-9][0-9A-Za-z.]*)`)},
	}
)

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Handler is a function of C that programs call: see [pjrt.Plugin.RegisterHandler].
type Handler struct {
	Name     string
	Function unsafe.Pointer
}

// Exchange is what the programs of this process exchange, or did last.
type Exchange struct {
	// Begun and Ended count exchanges. While they differ, the process is in one.
	Begun, Ended uint64
	// Kind and Site are the collective and its number in the program, Bytes the size of its arguments.
	Kind  string
	Site  int64
	Bytes int64
	// Since is how long ago it began.
	Since time.Duration
}
