package loop

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
)

// SignalError is the cause of a context that a signal has cancelled.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return e.Signal.String() }

// ExitCode is what a shell expects of a process that this signal has ended: 130 for an interrupt, 143 for a termination.
func (e *SignalError) ExitCode() int { return 128 + int(e.Signal) }

// WithSignals is a context that the first SIGINT (Ctrl-C) or SIGTERM cancels, with a [*SignalError] as its cause: a loop
// then ends at the next border between turns ([Loop.Run] says when that is), and its callbacks end. What cannot be broken
// off, such as a compilation or a long step, ends first. The second signal ends the process at once, as if nobody had listened.
// Call stop when the run is over; from then on signals do what they did before.
//
// Until then a write to a standard output or error that nobody reads any more (a pipe to head, a terminal that was closed) is an
// error of that write; Go ends the process for it, which is right for a filter, and the loss of a training. What this package shows
// does so in no case, with WithSignals or without: callbacks.ProgressBar, callbacks.Lines.
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	undo := catchBrokenPipes()
	go func() {
		defer close(done)
		var first os.Signal
		select {
		case first = <-signals:
		case <-ctx.Done(): // the run ends for another reason: a signal is again nobody's
		}
		signal.Stop(signals) // before the context is cancelled: whoever sees that may send the second one
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

// catchBrokenPipes has writes to broken standard outputs fail, until it is undone. It listens and does not ignore, which the programs
// that this one starts would inherit.
func catchBrokenPipes() (undo func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// resend gives a signal that was caught although nobody was to listen any more to those it belongs to.
func resend(s os.Signal) {
	if s == nil {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(s) // where that cannot be done, the signal is lost and nothing worse happens
	}
}

// ExitCode is what a program should exit with after a run: 0 without an error, 128 and the number of the signal that
// ended it, or 1. A signal that comes when the run is over and its callbacks end has ended nothing: that is 0.
func ExitCode(err error) int {
	var signalled *SignalError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &signalled):
		return signalled.ExitCode()
	}
	return 1
}

// Exit ends the program if err is not nil: it prints err by the standard logger and exits with its [ExitCode]. Deferred calls do
// not run. It is for the main of a program, as what package must does with errors:
//
//	must.M = loop.Exit // in place of a panic, whose trace says little about a missing file, and nothing about Ctrl-C
func Exit(err error) {
	if err != nil {
		catchBrokenPipes() // the exit code counts, whether anybody reads the error or not
		log.Print(err)
		os.Exit(ExitCode(err))
	}
}
