package callbacks

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
)

// Lines is a writer for output above a progress bar ([Bar].Below), safe for concurrent use. For the standard logger
// call log.SetOutput(lines).
type Lines struct {
	// Out is the writer, set before the first use. A broken pipe of standard output does not end the process.
	Out io.Writer

	mu    sync.Mutex
	quiet io.Writer // Out without SIGPIPE
	bar   *screen
	rest  []byte
}

func (l *Lines) out() io.Writer {
	if l.quiet == nil {
		l.quiet = l.Out
		if f, ok := l.Out.(*os.File); ok {
			l.quiet = quietPipe(f)
		}
	}
	return l.quiet
}

// Write writes p. Under a bar an incomplete line waits for its end.
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

func (l *Lines) join(bar *screen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bar = bar
}

func (l *Lines) leave(bar *screen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bar != bar {
		return
	}
	l.bar = nil
	if len(l.rest) > 0 {
		_, _ = l.out().Write(l.rest)
		l.rest = nil
	}
}

type screen struct {
	out io.Writer

	mu    sync.Mutex
	drawn func() string
	err   error
}

func (s *screen) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

func (s *screen) show(line string, again func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = again
	s.put(line)
}

func (s *screen) put(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.out, text)
	}
}

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
