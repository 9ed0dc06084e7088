package loop

import (
	"context"
	"errors"
	"log"
	"os"
	"syscall"

	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/internal/signals"
)

// SignalError is the cause of a context that a signal cancelled.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return e.Signal.String() }

// ExitCode returns the exit code of a process that this signal ended: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
func (e *SignalError) ExitCode() int { return 128 + int(e.Signal) }

// WithSignals returns a context that the first SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal closed) cancels with a
// [*SignalError] as its cause. A run then ends at the next border between iterations (see [Loop.Run]), and its
// callbacks end. Work that cannot be interrupted, such as a compilation or a long step, ends first. The second signal
// ends the process at once. A SIGHUP that is ignored, as under nohup, remains ignored. Call stop when the run is over;
// signals then have their earlier effect.
//
// Until then a write to a standard output or error without a reader (a pipe to head, a closed terminal) returns an
// error. Without WithSignals, Go ends the process, and the training is lost. callbacks.ProgressBar and callbacks.Lines
// never end the process.
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	return signals.Context(parent, func(s syscall.Signal) error { return &SignalError{s} })
}

// exitCode returns the exit code of a program after a run: 0 without an error, 128 plus the number of the signal that
// ended the run, or 1. A signal that arrives while callbacks end has not ended the run.
func exitCode(err error) int {
	var signalled *SignalError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &signalled):
		return signalled.ExitCode()
	}
	return 1
}

// Exit ends the program if err is not nil: it prints err by the standard logger and exits with 128 plus the number of
// the signal that ended the run ([SignalError.ExitCode]), or with 1. Deferred calls do not run. In a process of a job
// of package dist, Exit reports the error to the other processes, which end too. Use it in the main of a program, in
// place of the panic of package must:
//
//	must.M = loop.Exit
func Exit(err error) {
	if err != nil {
		signals.CatchBrokenPipes() // otherwise the exit code would be lost without a reader of the error
		log.Print(err)
		if job := joined.Now(); job != nil {
			_ = job.Leave(err) // err itself, or a failure to report it
		}
		os.Exit(exitCode(err))
	}
}
