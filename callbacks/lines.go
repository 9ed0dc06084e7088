package callbacks

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
)

// Lines is a writer for output above a progress bar. It clears the bar, writes, and draws the bar again below:
//
//	lines := &callbacks.Lines{Out: os.Stdout}
//	bar := callbacks.ProgressBar(os.Stderr, callbacks.Bar{Below: []*callbacks.Lines{lines}})
//	…
//	fmt.Fprintf(lines, "step %d: test loss %.3f\n", …) // in a task or a callback
//
// For the standard logger call log.SetOutput(lines).
//
// While a bar is shown, only whole lines are written, and the rest of a line waits for its end. Lines may be used from
// several goroutines.
type Lines struct {
	// Out is the writer, which may be another one than the bar's. It must be set before the first use. If it is a
	// standard output that nobody reads any more, Write returns the error and does not end the process.
	Out io.Writer

	mu    sync.Mutex
	quiet io.Writer // Out without a signal for a broken pipe, nil before the first use
	bar   *screen   // the one that is shown, nil if there is none
	rest  []byte    // of a line that has no end yet
}

// out is called with mu held.
func (l *Lines) out() io.Writer {
	if l.quiet == nil {
		l.quiet = l.Out
		if f, ok := l.Out.(*os.File); ok {
			l.quiet = quietPipe(f)
		}
	}
	return l.quiet
}

// Write writes p, or while a bar is shown the whole lines that there are so far.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.Out == nil:
		return 0, errors.New("callbacks: Lines have no writer: set Out")
	case l.bar == nil:
		return l.out().Write(p)
	}
	l.rest = append(l.rest, p...)
	whole := bytes.LastIndexByte(l.rest, '\n') + 1
	if whole == 0 {
		return len(p), nil
	}
	err := l.bar.above(l.out(), l.rest[:whole])
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// join sets the bar that is shown.
func (l *Lines) join(bar *screen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bar = bar
}

// leave is called when a bar has written its last line.
func (l *Lines) leave(bar *screen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bar != bar {
		return
	}
	l.bar = nil
	if len(l.rest) > 0 {
		_, _ = l.out().Write(l.rest) // there is nobody to return an error to
		l.rest = nil
	}
}

// screen is where a bar is drawn.
type screen struct {
	out io.Writer

	mu    sync.Mutex
	drawn func() string // the line, to be drawn again below others; nil if there is none
	err   error
}

func (s *screen) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// show writes a line, which is drawn again below other lines if again gives it once more.
func (s *screen) show(line string, again func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = again
	s.put(line)
}

// put writes, unless writing has failed before.
func (s *screen) put(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.out, text)
	}
}

// above writes whole lines above the bar.
func (s *screen) above(out io.Writer, lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn != nil {
		s.put(clearBelow)
		defer func() { s.put(s.drawn()) }()
	}
	_, err := out.Write(lines)
	return err
}
