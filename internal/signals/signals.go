// Package signals cancels a context when a signal arrives.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns a context that the first SIGINT, SIGTERM or SIGHUP cancels with cause(signal). The second signal has
// its usual effect. An ignored SIGHUP stays ignored. Until stop returns, writes to a standard output or error without a
// reader return an error.
func Context(parent context.Context, cause func(syscall.Signal) error) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	undo := CatchBrokenPipes()
	go func() {
		defer close(done)
		var first os.Signal
		select {
		case first = <-signals:
		case <-ctx.Done():
		}
		signal.Stop(signals) // first, for a second signal's usual effect
		if first != nil && ctx.Err() == nil {
			sent, _ := first.(syscall.Signal)
			cancel(cause(sent))
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

// CatchBrokenPipes makes writes to broken standard outputs return an error until undo is called. It receives SIGPIPE: a
// child process would inherit an ignored signal.
func CatchBrokenPipes() (undo func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// s was received after the handling had ended.
func resend(s os.Signal) {
	if s == nil {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(s) // if this fails, the signal is lost
	}
}
