package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/xla/install"
	"github.com/lazo-ml/lazo/xla/mpi"
)

// isMPI tells of a kind of install's table whether it is an implementation of MPI.
func isMPI(kind string) bool { return kind == install.MPI || kind == install.MPICH }

// tryMPI loads a library of MPI and asks for its version: it initializes nothing.
func tryMPI(_ context.Context, path string) error {
	_, err := mpi.Open(path)
	return err
}

// printMPI says by what lazo run starts jobs, if by anything.
func printMPI(w io.Writer, root string) {
	for _, kind := range []string{install.MPI, install.MPICH} {
		found, err := install.Find(kind, root)
		switch {
		case err == nil:
			line(w, kind, "%s: %s", found.Version, found.Launcher())
		case errors.Is(err, install.ErrNotInstalled):
			if kind == install.MPI {
				line(w, kind, "not installed: for jobs of several processes on this machine: lazo install mpi")
			}
		default:
			line(w, kind, "%v", err)
		}
	}
}

// examineMPI reads what was installed, and starts two processes by it.
func examineMPI(ctx context.Context, w io.Writer, kind, root string) error {
	if err := check(ctx, w, kind, root); err != nil {
		return err
	}
	found, err := install.Find(kind, root)
	if err != nil {
		return err
	}
	if err := tryMPI(ctx, found.Path); err != nil {
		return err
	}
	if err := launch.Run(ctx, launch.Options{N: 2, Command: []string{"true"}, Mpirun: found.Launcher(), Stderr: w}); err != nil {
		return fmt.Errorf("%s does not start two processes: %w", found.Launcher(), err)
	}
	line(w, "start", "ok, two processes")
	return nil
}
