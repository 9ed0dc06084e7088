package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// output is where a rank's standard output (1) or error (2) goes.
func (o *Options) output(rank, stream int) io.Writer {
	to := o.Stdout
	if stream == 2 {
		to = o.Stderr
	}
	prefix := fmt.Sprintf("[%d] ", rank)
	switch {
	case o.Verbose:
		return &lines{to: to, prefix: prefix}
	case rank > 0 && stream == 2:
		return &lines{to: to, prefix: prefix, repeats: o.warned, hurry: make(chan struct{})}
	case rank > 0:
		return io.Discard
	case stream == 2:
		return &whole{to: to, heard: &lines{to: heard{o.warned}}}
	}
	return &whole{to: to}
}

// warnings are those of rank 0's standard error, without their times: all ranks run one program, so most of them warn
// of the same. What another rank says before rank 0 does waits for it for a moment.
type warnings struct {
	mu   sync.Mutex
	said map[string]bool
	news chan struct{} // closed when rank 0 has said another one
}

func newWarnings() *warnings { return &warnings{said: map[string]bool{}, news: make(chan struct{})} }

// mostWarnings is how many are remembered.
const mostWarnings = 1000

var (
	warnLevel = regexp.MustCompile(`\bWARN(ING)?\b`)
	logTime   = regexp.MustCompile(`\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`)
)

// warning is a line without its time; "" for what warns of nothing.
func warning(line []byte) string {
	if !warnLevel.Match(line) {
		return ""
	}
	return string(logTime.ReplaceAll(bytes.TrimSpace(line), nil))
}

func (w *warnings) note(line []byte) {
	text := warning(line)
	if text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.said[text] && len(w.said) < mostWarnings {
		w.said[text] = true
		close(w.news)
		w.news = make(chan struct{})
	}
}

// heard notes the lines that are written to it.
type heard struct{ by *warnings }

func (h heard) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		h.by.note(line)
	}
	return len(p), nil
}

// sameWithin is how long another rank's warning waits for rank 0's.
const sameWithin = time.Second

// repeated tells whether rank 0 says the same, now or soon.
func (w *warnings) repeated(text string, hurry <-chan struct{}) bool {
	late := time.After(sameWithin)
	for {
		w.mu.Lock()
		said, news := w.said[text], w.news
		w.mu.Unlock()
		if said {
			return true
		}
		select {
		case <-late:
			return false
		case <-hurry:
			return false
		case <-news:
		}
	}
}

// writing keeps what ranks write at the same time apart: their writers may be one.
var writing sync.Mutex

// whole passes on what comes as it comes: rank 0 may draw a bar.
type whole struct {
	to    io.Writer
	heard *lines // takes the same, or is nil
}

func (w *whole) Write(p []byte) (int, error) {
	if w.heard != nil {
		_, _ = w.heard.Write(p) // it drops all
	}
	writing.Lock()
	defer writing.Unlock()
	return w.to.Write(p)
}

// lines writes whole lines, each behind the prefix.
type lines struct {
	to     io.Writer
	prefix string
	rest   []byte
	// repeats has what is not written again. What rank 0 may still say waits for that, beside the lines behind it.
	repeats *warnings
	held    sync.WaitGroup
	hurry   chan struct{} // closed when nothing waits any more
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 && len(l.rest) < 1<<16 {
		return len(p), nil
	}
	if end == 0 {
		end = len(l.rest)
	}
	return len(p), l.write(end)
}

func (l *lines) write(end int) error {
	var b bytes.Buffer
	for line := range bytes.Lines(l.rest[:end]) {
		if text := warning(line); l.repeats != nil && text != "" {
			kept := l.behind(line)
			l.held.Go(func() {
				if !l.repeats.repeated(text, l.hurry) {
					_ = l.put(kept) // as below, for a rank that goes on
				}
			})
			continue
		}
		b.Write(l.behind(line))
	}
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return l.put(b.Bytes())
}

// behind is a line behind the prefix.
func (l *lines) behind(line []byte) []byte {
	line = append([]byte(l.prefix), line...)
	if line[len(line)-1] != '\n' {
		line = append(line, '\n')
	}
	return line
}

func (l *lines) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	writing.Lock()
	defer writing.Unlock()
	_, err := l.to.Write(p)
	return err
}

// Close writes a last line that has no end, and what was held back.
func (l *lines) Close() (err error) {
	if len(l.rest) > 0 {
		err = l.write(len(l.rest))
	}
	if l.hurry != nil {
		close(l.hurry)
	}
	l.held.Wait()
	return err
}

// pipes are named pipes that ranks write to.
type pipes struct {
	ends       []*os.File // ours, by which a pipe has a writer until all ranks have ended
	readers    []*os.File
	copying    sync.WaitGroup
	mu         sync.Mutex
	complained bool // something came by a standard error
}

func (p *pipes) open(path string, to io.Writer) error {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return fmt.Errorf("make the pipe %s: %w", path, err)
	}
	end, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	p.ends = append(p.ends, end)
	reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	p.readers = append(p.readers, reader)
	isError := path[len(path)-1] == '2'
	p.copying.Go(func() {
		buffer := make([]byte, 1<<15)
		for {
			n, err := reader.Read(buffer)
			if n > 0 {
				if isError {
					p.mu.Lock()
					p.complained = true
					p.mu.Unlock()
				}
				_, _ = to.Write(buffer[:n]) // where nobody reads any more, ranks must still be able to write
			}
			if err != nil {
				if l, ok := to.(*lines); ok {
					_ = l.Close()
				}
				return
			}
		}
	})
	return nil
}

// drain waits for what is in the pipes, when the ranks have ended: a process that they left behind is not waited for.
func (p *pipes) drain() {
	for _, end := range p.ends {
		end.Close()
	}
	p.ends = nil
	for _, r := range p.readers {
		_ = r.SetReadDeadline(time.Now().Add(time.Second))
	}
	p.copying.Wait()
}

func (p *pipes) close() {
	p.drain()
	for _, r := range p.readers {
		r.Close()
	}
}
