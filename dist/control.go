package dist

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	beatEvery = 250 * time.Millisecond
	lookEvery = 100 * time.Millisecond
	// tooLong is a silence that no busy machine explains.
	tooLong = 4 * beatEvery
	// answerWithin is how long rank 0 waits for the stack of a rank that is stuck, and for its last messages to go.
	answerWithin = 500 * time.Millisecond
)

// wakefulness knows whether this process was stopped. Its lock is the holder's.
type wakefulness struct {
	looked, woke time.Time
	slept        time.Duration // the last time
}

// look is called several times a second. It tells whether this process did not run for longer than a busy machine
// explains.
func (w *wakefulness) look(now time.Time) (slept bool) {
	if gap := now.Sub(w.looked); !w.looked.IsZero() && gap > time.Second {
		w.woke, w.slept, slept = now, gap, true
	}
	w.looked = now
	return slept
}

// givenUp tells whether the process is only just awake, after so long that the others have given it up, and said so.
func (w *wakefulness) givenUp(now time.Time, deadline time.Duration) bool {
	enough := deadline * 3 / 4
	return !w.looked.IsZero() && now.Sub(w.looked) > max(enough, time.Second) || w.slept > enough && now.Sub(w.woke) < time.Second
}

// link is one side of a control connection, once the other is known.
type link struct {
	conn   net.Conn
	done   chan struct{}
	failed func(error)

	mu     sync.Mutex
	more   sync.Cond // the queue is longer, or closed
	queue  [][]byte  // frames, for the goroutine that writes: nobody waits for a peer that does not read
	closed bool      // nothing is sent any more
}

func newLink(c net.Conn, limit time.Duration, failed func(error)) *link {
	l := &link{conn: c, done: make(chan struct{}), failed: failed}
	l.more.L = &l.mu
	go func() {
		defer close(l.done)
		for f, ok := l.next(); ok; f, ok = l.next() {
			if err := put(c, f, limit); err != nil {
				l.mu.Lock()
				l.queue, l.closed = nil, true // what is left has no reader
				l.mu.Unlock()
				failed(err)
				return
			}
		}
	}()
	return l
}

// next waits for a frame to write; false when no more will come.
func (l *link) next() (f []byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.more.Wait()
	}
	if len(l.queue) == 0 {
		return nil, false
	}
	f, l.queue = l.queue[0], l.queue[1:]
	return f, true
}

// mostBeats is how many messages may wait before beats are left out. Others are as many as there are calls that wait.
const mostBeats = 64

// send hands a message over; false where nothing is sent any more, or a peer does not read and it is a beat.
func (l *link) send(m message) bool {
	f, err := frame(m)
	if err != nil {
		go l.failed(err) // which takes locks that the caller may hold
		return false
	}
	return l.push(f, m.Kind == kindBeat)
}

// push hands a frame over, as send does.
func (l *link) push(frame []byte, beat bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || beat && len(l.queue) >= mostBeats {
		return false
	}
	l.queue = append(l.queue, frame)
	l.more.Signal()
	return true
}

// flush ends the writing, and waits for what was handed over, no longer than limit.
func (l *link) flush(limit time.Duration) {
	l.mu.Lock()
	l.closed = true
	l.more.Signal()
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-time.After(limit):
	}
}

// hub is rank 0's side of all control connections.
type hub struct {
	j        *Job
	listener net.Listener
	hello    hello // of rank 0, which the others' must fit

	mu    sync.Mutex
	awake wakefulness
	links []*link // by rank; nil for rank 0
	views []view
	over  bool         // no message is sent any more
	calls []*message   // each rank's part in an agreement; nil: it has not come
	came  int          // how many of them are not nil
	own   chan message // what came of it, for rank 0
	stack chan string
	// dismissed is closed when the programs of all ranks end by errors.
	dismissed chan struct{}
}

func newHub(j *Job, address string, h hello) (*hub, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("dist: rank 0 cannot listen for the others: %w", err)
	}
	return &hub{
		j: j, listener: l, hello: h, links: make([]*link, j.size), views: make([]view, j.size), calls: make([]*message, j.size),
		own: make(chan message, 1), stack: make(chan string, j.size), dismissed: make(chan struct{}),
	}, nil
}

// gather waits until all ranks have come. A connection that is none of the job's is refused, and the others go on.
func (h *hub) gather(ctx context.Context) error {
	type comer struct {
		conn  net.Conn
		hello hello
	}
	comers := make(chan comer)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			c, err := h.listener.Accept()
			if err != nil {
				return
			}
			go func() {
				if c.SetReadDeadline(time.Now().Add(10*time.Second)) != nil {
					c.Close()
					return
				}
				m, err := read(c, mostHello)
				if err != nil || m.Kind != kindHello || m.Hello == nil {
					c.Close() // no rank of any job
					return
				}
				select {
				case comers <- comer{c, *m.Hello}:
				case <-ctx.Done():
					c.Close()
				}
			}()
		}
	}()
	hellos := make([]*hello, h.j.size)
	hellos[0] = &h.hello
	conns := make([]net.Conn, h.j.size)
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
		return fmt.Sprintf("for rank %s to come to %s", list(absent()), h.listener.Addr())
	})
	defer stop()
	for missing := h.j.size - 1; missing > 0; {
		select {
		case <-ctx.Done():
			absent := absent()
			err := fmt.Errorf("dist: %d of %d ranks have not come to rank 0 at %s (ranks %s): %w", len(absent), h.j.size, h.listener.Addr(), list(absent), context.Cause(ctx))
			refuseAll(conns, err.Error())
			return err
		case c := <-comers:
			if text := h.refuses(c.hello, hellos); text != "" {
				refuse(c.conn, text)
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
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			return fmt.Errorf("dist: the connection of rank %d: %w", r, err)
		}
		h.links[r] = newLink(c, h.j.deadline, func(err error) { h.lost(r, err) })
	}
	tell(h.links, message{Kind: kindWelcome, Welcome: &welcome{h.j.deadline, h.j.peers}})
	return nil
}

// tell hands a message to all links but nil ones. It is encoded once: a welcome names all ranks, so encoding it for
// each would be work by the square of their number.
func tell(links []*link, m message) {
	f, err := frame(m)
	for _, l := range links {
		switch {
		case l == nil:
		case err != nil:
			go l.failed(err)
		default:
			l.push(f, m.Kind == kindBeat)
		}
	}
}

// refuses says why a comer is none of the job's ranks; "" if it is one.
func (h *hub) refuses(c hello, hellos []*hello) string {
	switch w := &h.hello; {
	case c.Protocol != w.Protocol:
		return fmt.Sprintf("it speaks protocol %d of lazo's control connections, rank 0 on %s speaks %d: build all ranks from one version", c.Protocol, w.Host, w.Protocol)
	case c.Secret != w.Secret || c.Job != w.Job:
		return fmt.Sprintf("it is of job %q, this is job %q: a process of an earlier job, or two jobs have one address", c.Job, w.Job)
	case c.Attempt != w.Attempt:
		return fmt.Sprintf("it is of attempt %q, this is attempt %q: a process of an earlier start", c.Attempt, w.Attempt)
	case c.Size != w.Size:
		return fmt.Sprintf("it says that the job has %d ranks, rank 0 that it has %d", c.Size, w.Size)
	case c.Rank <= 0 || c.Rank >= w.Size:
		return fmt.Sprintf("rank %d of %d is none that comes to rank 0", c.Rank, w.Size)
	case hellos[c.Rank] != nil:
		o := hellos[c.Rank]
		return fmt.Sprintf("rank %d is there already: host %s, pid %d; this is host %s, pid %d", c.Rank, o.Host, o.PID, c.Host, c.PID)
	}
	return ""
}

func refuse(c net.Conn, text string) {
	_ = write(c, message{Kind: kindRefused, Text: text}, time.Second) // who does not hear it sees the end of the connection
	c.Close()
}

func refuseAll(conns []net.Conn, text string) {
	for _, c := range conns {
		if c != nil {
			refuse(c, strings.TrimPrefix(text, "dist: "))
		}
	}
}

// samePrograms compares what Go noted in the executables.
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

// peers gives each rank its place on its host, where the launcher did not say it.
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

// watch reads from all ranks and looks whether one keeps the others waiting, until the job ends.
func (h *hub) watch() {
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
	go h.look()
}

// look judges what the ranks said, and lets them know that rank 0 lives.
func (h *hub) look() {
	pardon, sent := time.Now(), time.Time{}
	for {
		time.Sleep(lookEvery)
		now := time.Now()
		h.mu.Lock()
		if h.awake.look(now) { // what others said meanwhile lies unread
			pardon = now
		}
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
		f, busy := h.j.judge(h.views, now, pardon)
		if busy {
			pardon = now
		}
		h.mu.Unlock()
		if f != nil {
			h.fail(f)
			return
		}
	}
}

// take is a message of rank r.
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
			go h.fail(&f)
		}
	case kindLeave:
		if m.Beat != nil {
			h.views[r].beat = *m.Beat
		}
		h.views[r].error, h.views[r].leaving = m.Text, time.Now()
	case kindBye:
		h.views[r].left = true
	case kindPut, kindGet, kindTry, kindForget:
		h.j.values.answer(r, m, func(m message) { h.links[r].send(m) })
	}
}

// allLeave tells whether the program of each rank ends by an error. The caller holds mu.
func (h *hub) allLeave() bool {
	return !slices.ContainsFunc(h.views, func(v view) bool { return v.error == "" })
}

// leave says that rank 0's program ends by an error, and waits until those of all do; else the job ends.
func (h *hub) leave(text string) {
	h.mu.Lock()
	h.views[0].error, h.views[0].leaving = text, time.Now()
	h.mu.Unlock()
	<-h.dismissed
	h.sayBye()
}

// lost: the connection of rank r has ended.
func (h *hub) lost(r int, err error) {
	h.mu.Lock()
	if h.over || h.views[r].left {
		h.mu.Unlock()
		return
	}
	v, givenUp := h.views[r], h.awake.givenUp(time.Now(), h.j.deadline)
	h.mu.Unlock()
	reason := "its connection ended"
	if !errors.Is(err, net.ErrClosed) && !strings.HasSuffix(err.Error(), "EOF") {
		reason = "its connection broke (" + err.Error() + ")"
	}
	f := h.j.failure(ExitLost, r, v.beat, time.Since(v.seen), fmt.Sprintf("%s was lost: %s before Job.Close: it died, was killed, or its program ended early. It was last %s",
		h.j.who(r), reason, v.beat.sentence(time.Since(v.seen))))
	if silent := time.Since(v.seen); silent > tooLong {
		f = h.j.silent(&v, r, silent)
	}
	if v.error != "" {
		f = h.j.failed(&v, r)
	}
	if f.Here = !givenUp; givenUp {
		h.j.end(f)
		return
	}
	h.fail(f)
}

// fail ends the job on all ranks, and this process. The first failure counts; it returns where there was one, or where
// rank 0 has left.
func (h *hub) fail(f *Failure) {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return
	}
	h.over = true
	links := slices.Clone(h.links)
	h.mu.Unlock()
	f.Here = true
	if f.Code == ExitStuck || f.Code == ExitDisagree {
		f.Stack = h.stackOf(f.Rank, links)
	}
	told := *f
	told.Here = false
	tell(links, message{Kind: kindEnd, Failure: &told})
	var flushed sync.WaitGroup
	for _, l := range links {
		if l != nil {
			flushed.Go(func() { l.flush(answerWithin) })
		}
	}
	flushed.Wait()
	h.j.end(f)
}

// stackOf asks a rank for the stack of what it does; "" if it does not answer.
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

// call is rank 0's own part in an agreement.
func (h *hub) call(m message) message {
	h.mu.Lock()
	h.answer(0, m)
	h.mu.Unlock()
	return <-h.own
}

// answer notes a rank's part, and sends what came of it to all ranks once the last has come: the largest of each word,
// or the data of all. The caller holds mu.
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

// differ says which ranks made which calls.
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

// close says to all that rank 0 leaves, and ends the connections.
func (h *hub) close() {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return
	}
	h.over = true
	h.mu.Unlock()
	h.sayBye()
}

func (h *hub) sayBye() {
	tell(h.links, message{Kind: kindBye})
	var flushed sync.WaitGroup
	for _, l := range h.links {
		if l != nil {
			flushed.Go(func() {
				l.flush(answerWithin)
				l.conn.Close()
			})
		}
	}
	flushed.Wait()
	h.listener.Close()
}

// spoke is the side of any other rank.
type spoke struct {
	j       *Job
	link    *link
	results chan message
	// dismissed is closed when rank 0 has said that it leaves.
	dismissed chan struct{}
	dismiss   sync.Once

	mu    sync.Mutex
	awake wakefulness
	seen  time.Time // when rank 0 said something last
	left  bool      // it leaves, or this rank does
	asked int64     // requests to the store so far
	asks  map[int64]chan message
}

// connect goes to rank 0 at one of the addresses, and waits to be welcome.
func connect(ctx context.Context, j *Job, addresses []string, h hello) (*spoke, error) {
	var last error
	stop := j.announce(func() string {
		return fmt.Sprintf("for rank 0 at %s, which is not there or waits for others itself", strings.Join(addresses, " or "))
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

// pause is how long a rank waits before it tries to reach rank 0 again: longer and longer, since thousands that wait
// for one that comes late would keep its host busy with refusing them.
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

// watch says what this rank does, and hears what rank 0 says, until the job ends.
func (s *spoke) watch() {
	go func() {
		for {
			m, err := read(s.link.conn, mostMessage)
			if err != nil {
				s.lost(err)
				return
			}
			s.take(m)
		}
	}()
	go func() {
		for {
			b := s.j.beat()
			now := time.Now()
			s.mu.Lock()
			if s.left {
				s.mu.Unlock()
				return
			}
			if s.awake.look(now) {
				s.seen = now
			}
			silent := now.Sub(s.seen)
			s.link.send(message{Kind: kindBeat, Beat: &b})
			s.mu.Unlock()
			if silent > s.j.deadline {
				s.silent(silent)
			}
			time.Sleep(beatEvery)
		}
	}()
}

func (s *spoke) take(m message) {
	s.mu.Lock()
	s.seen = time.Now()
	s.left = s.left || m.Kind == kindBye
	s.mu.Unlock()
	if m.Kind == kindBye {
		s.dismiss.Do(func() { close(s.dismissed) })
	}
	switch m.Kind {
	case kindResult:
		s.results <- m
	case kindValue, kindTaken, kindNone:
		s.answered(m)
	case kindStack:
		s.send(message{Kind: kindStack, Text: stacks()})
	case kindEnd:
		if m.Failure != nil {
			s.j.end(m.Failure)
		}
	}
}

// send hands a message over, unless this rank has left.
func (s *spoke) send(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.link.send(m)
	}
}

// silent: rank 0 says nothing.
func (s *spoke) silent(since time.Duration) {
	s.gone(fmt.Sprintf("%s gives no sign of life for %v: its process is stopped, or its host or the link to it is down", s.j.who(0), round(since)), true)
}

// lost: the connection to rank 0 has ended.
func (s *spoke) lost(err error) {
	s.mu.Lock()
	left, silent := s.left, time.Since(s.seen)
	s.mu.Unlock()
	switch {
	case left:
		return
	case silent > tooLong: // the launcher ends it, since another rank has seen that
		s.silent(silent)
		return
	}
	reason := ""
	if !errors.Is(err, net.ErrClosed) && !strings.HasSuffix(err.Error(), "EOF") {
		reason = " (" + err.Error() + ")"
	}
	s.gone(fmt.Sprintf("%s was lost: its connection ended before Job.Close%s: it died, was killed, or its program ended early", s.j.who(0), reason), false)
}

// beforeSpeaker is how much later than the rank that says why a job ended the others exit.
const beforeSpeaker = 300 * time.Millisecond

// gone ends this process, for rank 0 cannot. One of those that are left says why: rank 1, or the first rank on another
// host where that of rank 0 may be down.
func (s *spoke) gone(text string, host bool) {
	speaker := 1
	if host {
		for r, p := range s.j.peers {
			if p.Host != s.j.peers[0].Host {
				speaker = r
				break
			}
		}
	}
	b := s.j.beat()
	f := s.j.failure(ExitLost, 0, beat{}, 0, fmt.Sprintf("%s. %s was %s", text, s.j.who(s.j.rank), b.sentence(0)))
	s.mu.Lock()
	givenUp := s.awake.givenUp(time.Now(), s.j.deadline)
	s.mu.Unlock()
	f.Here = s.j.rank == speaker && !givenUp
	if !f.Here {
		time.Sleep(beforeSpeaker) // a launcher kills all when one has ended: the one that says why comes first
	}
	s.j.end(f)
}

// call is this rank's part in an agreement.
func (s *spoke) call(m message) message {
	s.send(m)
	return <-s.results
}

// leave says that this rank's program ends by an error, and waits until those of all do; else the job ends.
func (s *spoke) leave(text string) {
	b := s.j.beat()
	s.send(message{Kind: kindLeave, Text: text, Beat: &b})
	<-s.dismissed
	s.close()
	time.Sleep(beforeSpeaker) // mpirun ends all when one has failed: the error of rank 0 comes first
}

// close says that this rank goes, and ends the connection.
func (s *spoke) close() {
	s.mu.Lock()
	if !s.left {
		s.link.send(message{Kind: kindBye})
	}
	s.left = true
	s.mu.Unlock()
	s.link.flush(answerWithin)
	s.link.conn.Close()
}

// secret is what a process must know to be taken for a rank, where MPI can hand it round.
func secret() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
