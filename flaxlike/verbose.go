package flaxlike

import (
	"fmt"
	"io"
	"os"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

var _ abilities.Compiler = (*Model)(nil) // the bar asks it

// Verbosity is what a run shows.
type Verbosity int

const (
	// Bar is a progress bar, or one line for each epoch where the output is no terminal.
	Bar Verbosity = iota
	// Lines is one line for each epoch.
	Lines
	// Silent is nothing.
	Silent
)

// String is "bar", "lines" or "silent".
func (v Verbosity) String() string {
	if v < Bar || v > Silent {
		return fmt.Sprintf("Verbosity(%d)", int(v))
	}
	return [...]string{"bar", "lines", "silent"}[v]
}

func (v Verbosity) check() error {
	if v < Bar || v > Silent {
		return fmt.Errorf("the verbosity is %d, expected Bar, Lines or Silent", int(v))
	}
	return nil
}

// out is where a run shows something: the bar, and lines above it.
func out(w io.Writer) *callbacks.Lines {
	if lines, ok := w.(*callbacks.Lines); ok {
		return lines
	}
	if w == nil {
		w = os.Stderr
	}
	return &callbacks.Lines{Out: w} // a closed pipe does not end the program
}

// say shows a line. An error of the writer is ignored: the output is no part of the run.
func (v Verbosity) say(w io.Writer) func(format string, args ...any) {
	if v == Silent {
		return func(string, ...any) {}
	}
	return func(format string, args ...any) { _, _ = fmt.Fprintf(w, "fit: "+format+"\n", args...) }
}

// bar shows a run in epochs of so many steps.
func (v Verbosity) bar(w io.Writer, epochSteps loop.Steps) loop.Callback {
	if v == Lines {
		w = struct{ io.Writer }{w} // the bar does not see that it is a terminal
	}
	return callbacks.ProgressBar(w, callbacks.Bar{Epoch: loop.Epochs(1), EpochSteps: epochSteps, Off: v == Silent})
}
