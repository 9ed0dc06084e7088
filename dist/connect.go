package dist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

func connect(ctx context.Context, j *Job, addresses []string, h hello) (*spoke, error) {
	var last error
	stop := j.announce(func() string {
		return fmt.Sprintf("for rank 0 at %s, which has not started or is itself waiting for other ranks", strings.Join(addresses, " or "))
	})
	defer stop()
	for tried := 0; ; tried++ {
		for _, address := range addresses {
			c, err := dial(ctx, address, h)
			if err == nil {
				return welcomed(ctx, j, c, address)
			}
			last = err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("dist: rank %d cannot reach rank 0 at %s: %w (%w)", h.Rank, strings.Join(addresses, " or "), context.Cause(ctx), last)
		case <-time.After(pause(tried)):
		}
	}
}

// pause grows with each try, so that thousands of ranks do not overload rank 0's host.
func pause(tried int) time.Duration {
	d := 100 * time.Millisecond
	for ; tried > 0 && d < time.Second; tried-- {
		d += d / 2
	}
	return min(d, time.Second)
}

func dial(ctx context.Context, address string, h hello) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := write(c, message{Kind: kindHello, Hello: &h}, 5*time.Second); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
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
