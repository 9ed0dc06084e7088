package launch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func (o *Options) output(rank, stream int) io.Writer {
	to := o.Stdout
	if stream == 2 {
		to = o.Stderr
	}
	prefix := fmt.Sprintf("[%d] ", rank)
	switch {
	case o.Verbose:
		return &lines{to: to, prefix: prefix, said: o.said}
	case rank > 0 && stream == 2:
		return &lines{to: to, prefix: prefix, rank: rank, said: o.said, repeats: o.said, hurry: make(chan struct{})}
	case rank > 0:
		return io.Discard
	case stream == 2:
		return &whole{to: to, heard: &lines{to: heard{o.said}, said: o.said}}
	}
	return &whole{to: to}
}

// outlet takes all that ranks write, and keeps the first error, except of a reader that has ended.
type outlet struct {
	to  io.Writer
	mu  sync.Mutex
	err error
}

func (o *outlet) Write(p []byte) (int, error) {
	_, err := o.to.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		o.mu.Lock()
		o.err = cmp.Or(o.err, err)
		o.mu.Unlock()
	}
	return len(p), nil
}

func (o *outlet) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// sayings are the ranks' warnings and errors, without times. They wait briefly for rank 0's same line.
type sayings struct {
	mu   sync.Mutex
	by   map[string]int // the shown rank
	news chan struct{}  // closed at the next saying
	// The newest repeated error, with its ranks.
	last    string
	others  []int
	crashed bool // of this start
}

func newSayings() *sayings { return &sayings{by: map[string]int{}, news: make(chan struct{})} }

const mostSayings = 1000

var (
	warnLevel  = regexp.MustCompile(`\bWARN(ING)?\b`)
	errorLevel = regexp.MustCompile(`\bERROR\b`)
	logTime    = regexp.MustCompile(`\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`)
	logged     = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`) // of the standard logger, as by loop.Exit
)

// crash's first line may continue one of the program.
var crash = regexp.MustCompile(`^((panic|fatal error|SIG[A-Z]+): |goroutine \d+ .*\[running)`)

func (s *sayings) hear(message []byte) {
	if crash.Match(message) {
		s.mu.Lock()
		s.crashed = true
		s.mu.Unlock()
	}
}

// reset: crashed is the last start's.
func (s *sayings) reset() (crashed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	crashed, s.crashed = s.crashed, false
	return crashed
}

func messages(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			end := 0
			for {
				n := bytes.IndexByte(text[end:], '\n')
				if n < 0 {
					end = len(text)
					break
				}
				if end += n + 1; end == len(text) || text[end] != '\t' && text[end] != ' ' {
					break
				}
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// saying is "" for neither a warning nor an error.
func saying(message []byte) string {
	line, _, _ := bytes.Cut(message, []byte("\n"))
	if !warnLevel.Match(line) && !errorLevel.Match(line) && !logged.Match(line) {
		return ""
	}
	return string(bytes.TrimSpace(logTime.ReplaceAll(message, nil)))
}

// It requires mu.
func (s *sayings) note(rank int, text string) {
	if _, said := s.by[text]; !said && len(s.by) < mostSayings {
		s.by[text] = rank
		close(s.news)
		s.news = make(chan struct{})
	}
}

type heard struct{ by *sayings }

func (h heard) Write(p []byte) (int, error) {
	for m := range messages(p) {
		if text := saying(m); text != "" {
			h.by.mu.Lock()
			h.by.note(0, text)
			h.by.mu.Unlock()
		}
	}
	return len(p), nil
}

// sameWithin limits the wait for rank 0, sameAtEnd after all have ended.
const (
	sameWithin = time.Second
	sameAtEnd  = 100 * time.Millisecond
)

// repeated reports whether another rank wrote the same, rank 0 also until a time, *then after hurry is closed.
func (s *sayings) repeated(rank int, text string, until time.Time, hurry <-chan struct{}, then *time.Time) bool {
	late := time.After(time.Until(until))
	for waits := true; ; {
		s.mu.Lock()
		by, said := s.by[text]
		switch {
		case said && by != rank:
			s.count(rank, text)
		case !waits:
			s.note(rank, text)
		}
		news := s.news
		s.mu.Unlock()
		if said || !waits {
			return said && by != rank
		}
		select {
		case <-late:
			waits = false
		case <-hurry:
			hurry, late = nil, time.After(time.Until(*then))
		case <-news:
		}
	}
}

// It requires mu.
func (s *sayings) count(rank int, text string) {
	if warnLevel.MatchString(text) {
		return
	}
	if s.last != text {
		s.last, s.others = text, nil
	}
	if !slices.Contains(s.others, rank) {
		s.others = append(s.others, rank)
	}
}

const mostShown = 100

func (s *sayings) sum() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.others) == 0 {
		return ""
	}
	slices.Sort(s.others)
	ranks := "rank " + fmt.Sprint(s.others[0])
	if n := len(s.others); n > 1 {
		ranks = fmt.Sprintf("%d ranks (%d to %d)", n, s.others[0], s.others[n-1])
	}
	line, _, _ := strings.Cut(s.last, "\n")
	if shown := []rune(line); len(shown) > mostShown {
		line = string(shown[:mostShown]) + "…"
	}
	text := fmt.Sprintf("lazo run: %s said the same as rank %d: %s\n", ranks, s.by[s.last], line)
	s.last, s.others = "", nil
	return text
}

// writing: the ranks' writers may be one.
var writing sync.Mutex

type whole struct {
	to    io.Writer
	heard *lines // or nil
}

func (w *whole) Write(p []byte) (int, error) {
	if w.heard != nil {
		_, _ = w.heard.Write(p) // it discards all
	}
	writing.Lock()
	defer writing.Unlock()
	return w.to.Write(p)
}

type lines struct {
	to     io.Writer
	prefix string
	said   *sayings
	rest   []byte
	// A message that rank 0 may still write waits, and so do later lines.
	repeats *sayings
	rank    int
	mu      sync.Mutex
	waiting []waiting
	shows   bool
	held    sync.WaitGroup
	hurry   chan struct{} // closed when all ranks have ended
	then    time.Time     // for the waiting after that
}

type waiting struct {
	text  string // without times
	until time.Time
	shown []byte
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
	for m := range messages(l.rest[:end]) {
		l.said.hear(m)
		var kept []byte
		for line := range bytes.Lines(m) {
			kept = append(kept, l.behind(line)...)
		}
		if l.repeats == nil || !l.wait(saying(m), kept) {
			b.Write(kept)
		}
	}
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return l.put(b.Bytes())
}

func (l *lines) wait(text string, shown []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == "" && !l.shows {
		return false
	}
	l.waiting = append(l.waiting, waiting{text, time.Now().Add(sameWithin), shown})
	if !l.shows {
		l.shows = true
		l.held.Go(l.show)
	}
	return true
}

func (l *lines) show() {
	for {
		l.mu.Lock()
		if len(l.waiting) == 0 {
			l.shows = false
			l.mu.Unlock()
			return
		}
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.mu.Unlock()
		if next.text == "" || !l.repeats.repeated(l.rank, next.text, next.until, l.hurry, &l.then) {
			_ = l.put(next.shown) // as in pipes.open
		}
	}
}

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

func (l *lines) end() error {
	if len(l.rest) == 0 {
		return nil
	}
	return l.write(len(l.rest))
}

func (l *lines) Close() error {
	err := l.end()
	if l.hurry != nil {
		l.then = time.Now().Add(sameAtEnd)
		close(l.hurry)
	}
	l.held.Wait()
	return err
}

type pipes struct {
	ends       []*os.File // keep a writer until all ranks have ended
	readers    []*os.File
	copying    sync.WaitGroup
	mu         sync.Mutex
	complained bool
}

func (p *pipes) open(path string, to io.Writer) error {
	if err := makePipe(path); err != nil {
		return fmt.Errorf("make the pipe %s: %w", path, err)
	}
	end, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	p.ends = append(p.ends, end)
	reader, err := os.OpenFile(path, os.O_RDONLY|nonblocking, 0)
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
				_, _ = to.Write(buffer[:n]) // ranks must be able to write without a reader
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

// drain waits for the pipes' content, not for processes that the ranks left.
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
