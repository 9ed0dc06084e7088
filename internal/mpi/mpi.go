package mpi

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	ErrNotFound = errors.New("no MPI library")
	// ErrNotLoadable: the file is not a library for this machine, or lacks dependencies.
	ErrNotLoadable = errors.New("not a library that this machine can load")
	ErrNoMPI       = errors.New("not an MPI library that lazo knows")
	// ErrLauncher: the launcher is of another MPI implementation or version.
	ErrLauncher = errors.New("the launcher is of another MPI")
	ErrThreads  = errors.New("the MPI library has no MPI_THREAD_MULTIPLE")
	// ErrTwice: MPI was initialized before, or another library opened.
	ErrTwice     = errors.New("MPI is in use in this process already")
	ErrFinalized = errors.New("this process has left the job of MPI")
)

type Flavour int

const (
	OpenMPI Flavour = iota + 1
	MPICH           // also Intel MPI and MVAPICH
	ABI             // of MPI 5.0, for any implementation
)

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

// Exchange is the current or last exchange of this process's programs.
type Exchange struct {
	// Begun and Ended differ during an exchange.
	Begun, Ended uint64
	// Kind and Site are the collective and its number in the program, Bytes its arguments' size.
	Kind  string
	Site  int64
	Bytes int64
	Since time.Duration
}
