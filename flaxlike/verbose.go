package flaxlike

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// Verbosity is what a run shows.
type Verbosity int

const (
	// Bar is a progress bar, or plain lines where the output is no terminal.
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

// out is where a run shows something.
func out(w io.Writer) io.Writer {
	if w == nil {
		return os.Stderr
	}
	return w
}

// say shows a line. An error of the writer is ignored: the output is no part of the run.
func (v Verbosity) say(w io.Writer) func(format string, args ...any) {
	if v == Silent {
		return func(string, ...any) {}
	}
	lines := callbacks.NewLines(out(w)) // a closed pipe does not end the program
	return func(format string, args ...any) { _, _ = fmt.Fprintf(lines, "fit: "+format+"\n", args...) }
}

func (v Verbosity) options(w io.Writer, epoch loop.Steps, epochs int, known bool) []loop.Option {
	w = out(w)
	switch v {
	case Silent:
		return nil
	case Lines:
		of := ""
		if known {
			of = fmt.Sprintf("/%d", epochs)
		}
		lines := callbacks.NewLines(w)
		return []loop.Option{loop.Watch(loop.Every(epoch), func(_ context.Context, r loop.Report) error {
			_, _ = fmt.Fprintf(lines, "epoch %d%s:%s\n", r.Elapsed.Steps/int64(epoch), of, figures(r.Logs)) // as with the bar
			return nil
		})}
	}
	return []loop.Option{callbacks.ProgressBar(w)}
}

// figures are the numbers of a turn; of a loss and its mean over the epoch, the mean.
func figures(logs loop.Logs) string {
	var s strings.Builder
	for e := range logs.All() {
		if e.Collection == loop.Losses || e.Collection == loop.Metrics {
			if _, err := logs.Get("avg_" + e.Name); err == nil {
				continue
			}
		}
		if _, whole := e.Value.(loop.Payload); whole {
			continue
		}
		v, err := e.Value.Float()
		if err != nil {
			continue
		}
		fmt.Fprintf(&s, " %s %.4f", e.Name, v)
	}
	return s.String()
}
