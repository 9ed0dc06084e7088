package main

import (
	"context"
	"fmt"
	"io"

	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/mpi"
)

func isMPI(kind string) bool { return kind == install.MPI || kind == install.MPICH }

func tryMPI(_ context.Context, path string) error {
	_, err := mpi.Open(path)
	return err
}

func (c doctorCommand) examineMPI(ctx context.Context, w io.Writer) error {
	if err := check(ctx, w, c.Plugin, c.Prefix); err != nil {
		return err
	}
	found, err := install.Find(c.Plugin, c.Prefix)
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
