package dist

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// After gather nothing listens.
func (h *hub) gather(ctx context.Context) error {
	defer h.listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	comers := h.open(ctx, standardError())
	hellos := make([]*hello, h.j.size)
	hellos[0] = &h.hello
	conns := make([]net.Conn, h.j.size)
	refused := "" // the last
	absent := func() (list []int) {
		for r := range hellos {
			if hellos[r] == nil {
				list = append(list, r)
			}
		}
		return list
	}
	stop := h.j.announce(func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		return fmt.Sprintf("for rank %s to come to %s%s", list(absent()), h.listener.Addr(), h.strangers.String()+refused)
	})
	defer stop()
	for missing := h.j.size - 1; missing > 0; {
		select {
		case <-ctx.Done():
			absent := absent()
			err := fmt.Errorf("dist: %d of %d ranks have not connected to rank 0 at %s (ranks %s)%s: %w", len(absent), h.j.size, h.listener.Addr(), list(absent), h.strangers.String()+refused, context.Cause(ctx))
			refuseAll(conns, err.Error())
			return err
		case c := <-comers:
			if text := h.refuses(c.hello, hellos); text != "" {
				refuse(c.conn, text)
				h.mu.Lock()
				refused = fmt.Sprintf("; rank %d (host %s, pid %d) was refused: %s", c.hello.Rank, c.hello.Host, c.hello.PID, text)
				h.mu.Unlock()
				continue
			}
			h.mu.Lock()
			hellos[c.hello.Rank], conns[c.hello.Rank] = &c.hello, c.conn
			h.mu.Unlock()
			missing--
		}
	}
	stop()
	if err := samePrograms(hellos); err != nil {
		refuseAll(conns, err.Error())
		return err
	}
	h.j.peers = peers(hellos)
	now := time.Now()
	for r, c := range conns {
		h.views[r].seen = now
		if c == nil {
			continue
		}
		h.links[r] = newLink(c, h.j.deadline, func(err error) { h.lost(r, err) })
	}
	tell(h.links, message{Kind: kindWelcome, Welcome: &welcome{h.j.deadline, h.j.peers}})
	return nil
}

func (h *hub) refuses(c hello, hellos []*hello) string {
	switch w := &h.hello; {
	case c.Job != w.Job:
		return fmt.Sprintf("it is of job %q, this is job %q: a process of an earlier job, or two jobs use the same address", c.Job, w.Job)
	case c.Attempt != w.Attempt:
		return fmt.Sprintf("it is of attempt %q, this is attempt %q: a process of an earlier start", c.Attempt, w.Attempt)
	case c.Size != w.Size:
		return fmt.Sprintf("it says that the job has %d ranks, rank 0 that it has %d", c.Size, w.Size)
	case c.Rank <= 0 || c.Rank >= w.Size:
		return fmt.Sprintf("rank %d of %d is not a rank that connects to rank 0", c.Rank, w.Size)
	case hellos[c.Rank] != nil:
		o := hellos[c.Rank]
		return fmt.Sprintf("rank %d is already connected: host %s, pid %d; this is host %s, pid %d", c.Rank, o.Host, o.PID, c.Host, c.PID)
	}
	return ""
}

func refuse(c net.Conn, text string) {
	_ = write(c, message{Kind: kindRefused, Text: text}, time.Second) // else the process sees a closed connection
	c.Close()
}

func refuseAll(conns []net.Conn, text string) {
	for _, c := range conns {
		if c != nil {
			refuse(c, strings.TrimPrefix(text, "dist: "))
		}
	}
}

func samePrograms(hellos []*hello) error {
	zero := hellos[0]
	for r, h := range hellos[1:] {
		for i := range max(len(h.Program), len(zero.Program)) {
			var a, b string
			if i < len(zero.Program) {
				a = zero.Program[i]
			}
			if i < len(h.Program) {
				b = h.Program[i]
			}
			if a != b {
				return fmt.Errorf("dist: rank %d (host %s) runs another program than rank 0 (host %s): %q against %q: start all ranks from one build", r+1, h.Host, zero.Host, b, a)
			}
		}
	}
	return nil
}

func peers(hellos []*hello) []peer {
	list := make([]peer, len(hellos))
	here := map[string]int{}
	for r, h := range hellos {
		list[r] = peer{h.Host, h.PID, h.LocalRank, h.LocalSize}
		if h.LocalRank < 0 {
			list[r].LocalRank = here[h.Host]
		}
		here[h.Host]++
	}
	for r := range list {
		if list[r].LocalSize < 0 || hellos[r].LocalRank < 0 {
			list[r].LocalSize = here[list[r].Host]
		}
	}
	return list
}
