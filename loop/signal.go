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

// ExitCode returns 128 plus the signal's number, as for a process that it ended.
func (e *SignalError) ExitCode() int { return 128 + int(e.Signal) }

// WithSignals returns a context that the first SIGINT (Ctrl-C), SIGTERM or SIGHUP cancels with a [*SignalError] as
// its cause. The second signal ends the process at once. An ignored SIGHUP, as under nohup, remains ignored. stop
// restores the earlier effects.
//
// Until then a write to a standard output or error without a reader (a pipe to head) returns an error and does not
// end the process.
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	return signals.Context(parent, func(s syscall.Signal) error { return &SignalError{s} })
}

// A signal that arrived while callbacks ended does not count.
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

// Exit ends the program if err is not nil: it logs err and exits with [SignalError.ExitCode], or with 1. Deferred
// calls do not run. In a job of package dist the other processes receive the error and end too. In main, with this
// line an error exits instead of panicking:
//
//	must.M = loop.Exit
func Exit(err error) {
	if err != nil {
		signals.CatchBrokenPipes() // else a closed pipe would change the exit code
		log.Print(err)
		if job := joined.Now(); job != nil {
			_ = job.Leave(err)
		}
		os.Exit(exitCode(err))
	}
}
