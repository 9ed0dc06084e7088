package callbacks

import (
	"bytes"
	"io"
	"os"
	"slices"
	"sync"
)

// Lines is a writer for what is to stand above a progress bar. It takes the bar off the terminal, writes, and draws the bar
// again below:
//
//	lines := callbacks.NewLines(os.Stdout)
//	bar := callbacks.ProgressBar(os.Stderr, callbacks.BarBelow(lines))
//	…
//	fmt.Fprintf(lines, "step %d: test loss %.3f\n", …) // in an action, a callback, a callback
//
// For the standard logger it is log.SetOutput(NewLines(os.Stderr)), with that one among the bar's Lines too.
//
// From the bar's first line to its last, whole lines are written alone, and the rest of a line waits for its end; else all goes
// through as it comes. It may be used from any goroutine.
type Lines struct {
	out io.Writer

	mu   sync.Mutex
	bar  *screen // the one that is shown, nil if there is none
	rest []byte  // of a line that has no end yet
}

// NewLines makes a writer above bars; w is where the lines go, which may be another writer than the bar's. If that is a standard
// output that nobody reads any more, Write gives the error, and the program goes on.
func NewLines(w io.Writer) *Lines {
	if f, ok := w.(*os.File); ok {
		w = quietPipe(f)
	}
	return &Lines{out: w}
}

// BarBelow has a bar stand below lines, those of one or several writers.
func BarBelow(lines ...*Lines) BarOption {
	lines = slices.Clone(lines)
	return func(b *Bar) { b.above = lines }
}

// Write writes the whole lines that there are.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bar == nil {
		return l.out.Write(p)
	}
	l.rest = append(l.rest, p...)
	whole := bytes.LastIndexByte(l.rest, '\n') + 1
	if whole == 0 {
		return len(p), nil
	}
	err := l.bar.above(l.out, l.rest[:whole])
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// join tells of the bar that is shown.
func (l *Lines) join(bar *screen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bar = bar
}

// leave tells that a bar has written its last line.
func (l *Lines) leave(bar *screen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bar != bar {
		return
	}
	l.bar = nil
	if len(l.rest) > 0 {
		_, _ = l.out.Write(l.rest) // as with all that is printed, nobody waits for an error
		l.rest = nil
	}
}

// screen is where a bar is drawn.
type screen struct {
	out io.Writer

	mu    sync.Mutex
	drawn string // the line that stands there, "" if nothing must be drawn again
	err   error
}

func (s *screen) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// show writes a line, which stays to be drawn again if others go above it.
func (s *screen) show(line string, stays bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = ""
	if s.put(line); stays {
		s.drawn = line
	}
}

// put writes unless that has failed before.
func (s *screen) put(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.out, text)
	}
}

// above writes whole lines elsewhere, where the bar stands in their way.
func (s *screen) above(out io.Writer, lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn != "" {
		s.put("\r" + clearLine)
		defer s.put(s.drawn)
	}
	_, err := out.Write(lines)
	return err
}
