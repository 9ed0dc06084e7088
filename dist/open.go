package dist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

type comer struct {
	conn  net.Conn
	hello hello
}

// mostStrangers unproved connections, besides one for each rank, may be open. A further one ends the oldest.
const mostStrangers = 256

type strangers struct {
	mu      sync.Mutex
	open    []net.Conn // oldest first
	refused int
	last    string
}

func (s *strangers) enter(c net.Conn, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= most {
		s.endOldest()
	}
	s.open = append(s.open, c)
}

// endOldest requires mu.
func (s *strangers) endOldest() {
	if len(s.open) > 0 {
		s.open[0].Close()
		s.open = s.open[1:]
	}
}

func (s *strangers) endHalf() (any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range (len(s.open) + 1) / 2 {
		s.endOldest()
		any = true
	}
	return any
}

func (s *strangers) leave(c net.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(other net.Conn) bool { return other == c })
	if err != nil {
		s.refused, s.last = s.refused+1, fmt.Sprintf("%v: %v", c.RemoteAddr(), err)
	}
}

// String has no text that a stranger sent.
func (s *strangers) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == 0 {
		return ""
	}
	return fmt.Sprintf("; %d connections were refused, the last of %s", s.refused, s.last)
}

// open passes on connections that prove the job's secret. The others receive an opening at most.
func (h *hub) open(ctx context.Context, complaints io.Writer) <-chan comer {
	comers := make(chan comer)
	go func() {
		complained := false
		for failed := 0; ; {
			c, err := h.listener.Accept()
			switch {
			case err == nil:
				failed = 0
				h.strangers.enter(c, h.j.size+mostStrangers)
				go h.admit(ctx, c, comers)
				continue
			case errors.Is(err, net.ErrClosed):
				return
			case !complained:
				complained = true
				fmt.Fprintf(complaints, "lazo: rank 0 cannot accept connections at %v, and tries again: %v\n", h.listener.Addr(), err)
			}
			wait := pause(failed)
			if h.strangers.endHalf() { // they may have the last file descriptors
				wait = time.Millisecond // until their readers have let go
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
				failed++
			}
		}
	}()
	return comers
}

func (h *hub) admit(ctx context.Context, c net.Conn, comers chan<- comer) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err := checkProof(c, h.secret, func() { h.strangers.leave(c, nil) })
	var m message
	if err != nil {
		h.strangers.leave(c, err)
	} else {
		m, err = read(c, mostHello)
	}
	if !stop() || err != nil || m.Kind != kindHello || m.Hello == nil {
		c.Close()
		return
	}
	select {
	case comers <- comer{c, *m.Hello}:
	case <-ctx.Done():
		c.Close()
	}
}
