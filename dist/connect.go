package dist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// connect tries until ctx ends: a stranger's answers end nothing.
func connect(ctx context.Context, j *Job, addresses []string, h hello, secret string) (*spoke, error) {
	at := strings.Join(addresses, " or ")
	var last atomic.Pointer[error]
	stop := j.announce(func() string {
		text := fmt.Sprintf("for rank 0 at %s, which has not started or is itself waiting for other ranks", at)
		if err := last.Load(); err != nil {
			text += fmt.Sprintf(" (the last try: %v)", *err)
		}
		return text
	})
	defer stop()
	failed := errors.New("it has no address")
	for tried := 0; ; tried++ {
		for _, address := range addresses {
			c, err := dial(ctx, address, h, secret)
			if err == nil {
				last.Store(nil)
				return welcomed(ctx, j, c, address)
			}
			last.Store(&err)
			failed = err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("dist: rank %d cannot reach rank 0 at %s: %w (%w)", h.Rank, at, context.Cause(ctx), failed)
		case <-time.After(pause(tried)):
		}
	}
}

// pause grows to spare rank 0's host.
func pause(tried int) time.Duration {
	d := 100 * time.Millisecond
	for ; tried > 0 && d < time.Second; tried-- {
		d += d / 2
	}
	return min(d, time.Second)
}

func dial(ctx context.Context, address string, h hello, secret string) (_ net.Conn, err error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			c.Close()
		}
	}()
	if err := prove(c, secret); err != nil {
		return nil, fmt.Errorf("%s is not rank 0 of this job: %w", address, err)
	}
	return c, write(c, message{Kind: kindHello, Hello: &h}, 5*time.Second)
}

func welcomed(ctx context.Context, j *Job, c net.Conn, address string) (_ *spoke, err error) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	m, err := read(c, mostMessage)
	if !stop() {
		return nil, fmt.Errorf("dist: rank 0 at %s waits for other ranks: %w", address, context.Cause(ctx))
	}
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return nil, fmt.Errorf("dist: rank 0 at %s has ended before all ranks had connected: it died, was killed, or its program ended (%w)", address, err)
	case err != nil:
		return nil, fmt.Errorf("dist: rank 0 at %s gave no answer: %w", address, err)
	case m.Kind == kindRefused:
		return nil, fmt.Errorf("dist: rank 0 at %s refuses this process (rank %d): %s", address, j.rank, m.Text)
	case m.Kind != kindWelcome || m.Welcome == nil || len(m.Welcome.Peers) != j.size:
		return nil, fmt.Errorf("dist: rank 0 at %s answers with %q, expected a welcome", address, m.Kind)
	}
	j.deadline, j.peers = m.Welcome.Deadline, m.Welcome.Peers
	s := &spoke{j: j, results: make(chan message, 1), dismissed: make(chan struct{}), seen: time.Now(), asks: map[int64]chan message{}}
	s.link = newLink(c, j.deadline, s.lost)
	return s, nil
}
