package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/signals"
)

type runCommand struct {
	NP       int      `name:"np" short:"n" required:"" placeholder:"N" help:"Number of ranks."`
	Restarts int      `placeholder:"K" help:"Start a job that failed again, up to K times; the program sees the number of its start in LAZO_ATTEMPT."`
	Min      int      `placeholder:"N" help:"Each restart has a rank fewer, down to N."`
	Verbose  bool     `short:"v" help:"Print the output of all ranks, each line behind its rank. Otherwise the standard output is that of rank 0."`
	Mpirun   string   `placeholder:"PATH" help:"The mpirun of an Open MPI or MPICH, in place of the one that lazo installed."`
	NoMPI    bool     `name:"no-mpi" help:"Start the ranks without MPI."`
	Command  []string `arg:"" passthrough:"" help:"The program and its arguments."`
}

func (c runCommand) Run(s session) error {
	if c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	defer signals.CatchBrokenPipes()() // ranks continue without a reader of their output
	err := launch.Run(s.ctx, launch.Options{
		N: c.NP, Command: c.Command, Mpirun: c.Mpirun, NoMPI: c.NoMPI, Restarts: c.Restarts, Min: c.Min,
		Verbose: c.Verbose, Stdin: piped(s.stdin), Stdout: s.stdout, Stderr: s.stderr,
	})
	if failed := (*launch.ExitError)(nil); errors.As(err, &failed) {
		return exitCode(failed.Code) // already printed by the ranks or mpirun
	}
	return err
}

// A terminal would stop ranks that read it, in another process group.
func piped(r io.Reader) io.Reader {
	if onTerminal(r) {
		return nil
	}
	return r
}

type exitCode int

func (exitCode) Error() string { return errProblem.Error() }

// kong would read mpirun's -np as -n with the value "p".
func dashes(args []string) []string {
	if len(args) == 0 || args[0] != "run" {
		return args
	}
	args = slices.Clone(args)
	for i := 1; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
		name, _, valued := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if slices.Contains([]string{"np", "restarts", "min", "mpirun", "verbose", "no-mpi"}, name) {
			args[i] = "--" + strings.TrimLeft(args[i], "-")
		}
		if !valued && slices.Contains([]string{"np", "n", "restarts", "min", "mpirun"}, name) {
			i++
		}
	}
	return args
}
