package dist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

type hub struct {
	j        *Job
	listener net.Listener
	hello    hello
	secret   string

	strangers strangers

	mu        sync.Mutex
	awake     wakefulness
	links     []*link
	views     []view
	over      bool
	calls     []*message
	came      int
	own       chan message
	stack     chan string
	dismissed chan struct{}
	byes      chan struct{}
}

func newHub(j *Job, address string, h hello, secret string) (*hub, error) {
	l := inherited()
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", address); err != nil {
			return nil, fmt.Errorf("dist: rank 0 cannot listen for the others: %w", err)
		}
	}
	return &hub{
		j: j, listener: l, hello: h, secret: secret, links: make([]*link, j.size), views: make([]view, j.size), calls: make([]*message, j.size),
		own: make(chan message, 1), stack: make(chan string, j.size), dismissed: make(chan struct{}), byes: make(chan struct{}, j.size),
	}, nil
}

func (h *hub) watch() {
	h.awake.look(time.Now()) // a stop may follow at once
	for r, l := range h.links {
		if l == nil {
			continue
		}
		go func() {
			for {
				m, err := read(l.conn, mostMessage)
				if err != nil {
					h.lost(r, err)
					return
				}
				h.take(r, m)
			}
		}()
	}
	go h.look(standardError())
}

func (h *hub) look(w io.Writer) {
	pardon, sent, said := time.Now(), time.Time{}, time.Time{}
	for {
		time.Sleep(lookEvery)
		now := time.Now()
		h.mu.Lock()
		h.awake.look(now)
		if h.over {
			h.mu.Unlock()
			return
		}
		h.views[0].beat, h.views[0].seen = h.j.beat(), now
		if now.Sub(sent) >= beatEvery {
			stay := slices.Clone(h.links)
			for r := range stay {
				if h.views[r].left {
					stay[r] = nil
				}
			}
			tell(stay, message{Kind: kindBeat})
			sent = now
		}
		if h.over = h.allLeave(); h.over {
			h.mu.Unlock()
			close(h.dismissed)
			return
		}
		f, busy := h.j.judge(h.views, now, &h.awake, pardon, h.j.deadline)
		if busy {
			pardon = now
		}
		if f == nil && h.j.deadline > patient && now.Sub(said) >= again {
			if late, _ := h.j.judge(h.views, now, &h.awake, pardon, patient); late != nil {
				said = now
				go h.j.reportTo(w, late) // it may block
			}
		}
		h.mu.Unlock()
		if f != nil {
			h.fail(f)
			return
		}
	}
}

func (h *hub) take(r int, m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.views[r].seen = time.Now()
	switch m.Kind {
	case kindBeat:
		if m.Beat != nil {
			h.views[r].beat = *m.Beat
		}
	case kindCall:
		h.answer(r, m)
	case kindStack:
		select {
		case h.stack <- m.Text:
		default:
		}
	case kindFail:
		if m.Failure != nil {
			f := *m.Failure
			if f.Here = !h.awake.givenUp(time.Now(), h.j.deadline); f.Here {
				go h.fail(&f)
			} else { // it and the others have reported rank 0
				go h.j.end(&f)
			}
		}
	case kindLeave:
		if m.Beat != nil {
			h.views[r].beat = *m.Beat
		}
		h.views[r].error, h.views[r].leaving = m.Text, time.Now()
	case kindBye:
		if !h.views[r].left {
			h.views[r].left = true
			h.byes <- struct{}{} // has room
		}
	case kindPut, kindGet, kindTry, kindForget:
		h.j.values.answer(r, m, func(m message) { h.links[r].send(m) })
	}
}

// It requires mu.
func (h *hub) allLeave() bool {
	return !slices.ContainsFunc(h.views, func(v view) bool { return v.error == "" })
}

func (h *hub) leave(text string) {
	h.mu.Lock()
	h.views[0].error, h.views[0].leaving = text, time.Now()
	h.mu.Unlock()
	<-h.dismissed
	h.sayBye()
}

func (h *hub) lost(r int, err error) {
	h.mu.Lock()
	if h.over || h.views[r].left {
		h.mu.Unlock()
		return
	}
	v, givenUp := h.views[r], h.awake.givenUp(time.Now(), h.j.deadline)
	silent := time.Since(h.awake.excuse(v.seen))
	h.mu.Unlock()
	reason := "its connection ended"
	if fault := fault(err); fault != "" {
		reason = "its connection broke" + fault
	}
	f := h.j.failure(ExitLost, r, v.beat, time.Since(v.seen), fmt.Sprintf("%s was lost: %s before Job.Close: it died, was killed, or its program ended early. Its last heartbeat was %s",
		h.j.who(r), reason, v.beat.sentence(0)))
	if silent > tooLong {
		f = h.j.silent(&v, r, silent)
	}
	if v.error != "" {
		f = h.j.failed(&v, r)
	}
	if bad, ok := errors.AsType[*messageError](err); ok {
		f = h.j.failure(bad.code, r, v.beat, time.Since(v.seen), fmt.Sprintf("%s. Its last heartbeat was %s", bad.text(h.j.who(r)), v.beat.sentence(0)))
	}
	if f.Here = !givenUp; givenUp {
		h.j.end(f)
		return
	}
	h.fail(f)
}

// fail ends the job and this process; later callers block. It returns if rank 0 has left.
func (h *hub) fail(f *Failure) {
	h.j.ending.Do(func() {
		h.mu.Lock()
		left := h.over
		h.over = true
		links := slices.Clone(h.links)
		h.mu.Unlock()
		if left {
			return
		}
		f.Here = true
		if f.Code == ExitStuck || f.Code == ExitDisagree {
			f.Stack = h.stackOf(f.Rank, links)
		}
		// The message ends other ranks, then the launcher ends all.
		h.j.say(f)
		told := *f
		told.Here = false
		tell(links, message{Kind: kindEnd, Failure: &told})
		flush(links)
		exit(f.Code)
	})
}

func (h *hub) stackOf(r int, links []*link) string {
	if r == 0 {
		return stacks()
	}
	if links[r] == nil || !links[r].send(message{Kind: kindStack}) {
		return ""
	}
	select {
	case text := <-h.stack:
		return text
	case <-time.After(answerWithin):
		return ""
	}
}

func (h *hub) call(m message) message {
	h.mu.Lock()
	h.answer(0, m)
	h.mu.Unlock()
	return <-h.own
}

// answer's last part sends the result: the maximum of each word, or all data. It requires mu.
func (h *hub) answer(r int, m message) {
	if h.calls[r] == nil {
		h.came++
	}
	h.calls[r] = &m
	if h.came < len(h.calls) {
		return
	}
	result := message{Kind: kindResult}
	var texts []string
	same := true
	for _, c := range h.calls {
		texts = append(texts, c.Shown)
		same = same && c.Call == m.Call && len(c.Words) == len(m.Words)
	}
	if !same {
		result.Text = differ(texts)
	} else if result.Words = slices.Clone(m.Words); result.Words == nil {
		for _, c := range h.calls {
			result.Parts = append(result.Parts, c.Data)
		}
	} else {
		for _, c := range h.calls {
			for i, word := range c.Words {
				result.Words[i] = max(result.Words[i], word)
			}
		}
	}
	clear(h.calls)
	h.came = 0
	tell(h.links, result)
	h.own <- result
}

func differ(texts []string) string {
	var distinct []string
	by := map[string][]int{}
	for r, text := range texts {
		if by[text] == nil {
			distinct = append(distinct, text)
		}
		by[text] = append(by[text], r)
	}
	var parts []string
	for _, text := range distinct {
		parts = append(parts, fmt.Sprintf("%s by rank %s", text, list(by[text])))
	}
	return "the ranks make different calls: " + strings.Join(parts, ", ") + ": all must make the same, in the same order"
}

// close waits until the others have left: a rank that misses the result of Close is reported.
func (h *hub) close() {
	h.mu.Lock()
	h.views[0].left = true
	h.mu.Unlock()
	late, cancel := context.WithTimeout(context.Background(), 2*h.j.closeWithin())
	defer cancel()
	for range h.j.size - 1 {
		select {
		case <-h.byes:
		case <-late.Done():
		}
	}
	h.mu.Lock()
	over := h.over
	h.over = true
	h.mu.Unlock()
	if !over {
		h.sayBye()
	}
}

func (h *hub) sayBye() {
	tell(h.links, message{Kind: kindBye})
	flush(h.links)
	for _, l := range h.links {
		if l != nil {
			l.conn.Close()
		}
	}
}
