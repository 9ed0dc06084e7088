package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
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
	switch {
	case o.Verbose, rank > 0 && stream == 2:
		return &lines{to: to, prefix: fmt.Sprintf("[%d] ", rank)}
	case rank > 0:
		return io.Discard
	}
	return &whole{to: to}
}

// writing keeps what ranks write at the same time apart: their writers may be one.
var writing sync.Mutex

// whole passes on what comes as it comes: rank 0 may draw a bar.
type whole struct{ to io.Writer }

func (w *whole) Write(p []byte) (int, error) {
	writing.Lock()
	defer writing.Unlock()
	return w.to.Write(p)
}

// lines writes whole lines, each behind the prefix.
type lines struct {
	to     io.Writer
	prefix string
	rest   []byte
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
		b.WriteString(l.prefix)
		b.Write(line)
		if line[len(line)-1] != '\n' {
			b.WriteByte('\n')
		}
	}
	l.rest = append(l.rest[:0], l.rest[end:]...)
	writing.Lock()
	defer writing.Unlock()
	_, err := l.to.Write(b.Bytes())
	return err
}

// Close writes a last line that has no end.
func (l *lines) Close() error {
	if len(l.rest) == 0 {
		return nil
	}
	return l.write(len(l.rest))
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
