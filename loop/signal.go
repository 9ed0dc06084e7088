package loop

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/lazo-ml/lazo/internal/joined"
)

// SignalError is the cause of a context that a signal has cancelled.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return e.Signal.String() }

// ExitCode is the exit code of a process that this signal has ended: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
func (e *SignalError) ExitCode() int { return 128 + int(e.Signal) }

// WithSignals is a context that the first SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal is gone) cancels, with a
// [*SignalError] as its cause: a run then ends at the next border between turns (see [Loop.Run]), and its callbacks
// end. What cannot be interrupted, such as a compilation or a long step, ends first. The second signal ends the process
// at once. A SIGHUP that is ignored, as under nohup, stays ignored. Call stop when the run is over; from then on
// signals do what they did before.
//
// Until then a write to a standard output or error that nobody reads any more (a pipe to head, a closed terminal)
// returns an error; without WithSignals, Go ends the process for it, and a training would be lost.
// callbacks.ProgressBar and callbacks.Lines never end the process.
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	undo := catchBrokenPipes()
	go func() {
		defer close(done)
		var first os.Signal
		select {
		case first = <-signals:
		case <-ctx.Done(): // the run ended for another reason
		}
		signal.Stop(signals) // before the context is cancelled: then the second signal may come
		if first != nil && ctx.Err() == nil {
			sent, _ := first.(syscall.Signal)
			cancel(&SignalError{sent})
			first = nil
		}
		resend(first)
		select {
		case second := <-signals:
			resend(second)
		default:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
		undo()
	}
}

// catchBrokenPipes makes writes to broken standard outputs fail, until it is undone. It listens to the signal: ignoring
// it would be inherited by the programs that this one starts.
func catchBrokenPipes() (undo func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// resend sends a signal again that was caught after its handling had ended.
func resend(s os.Signal) {
	if s == nil {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(s) // if that fails, the signal is lost
	}
}

// exitCode is the exit code of a program after a run: 0 without an error, 128 plus the number of the signal that ended
// the run, or 1 for any other error. A signal that comes while callbacks end has not ended the run.
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
		catchBrokenPipes() // or the exit code would be lost if nobody reads the error
		log.Print(err)
		if job := joined.Now(); job != nil {
			_ = job.Leave(err) // err itself, or what hindered telling it
		}
		os.Exit(exitCode(err))
	}
}
