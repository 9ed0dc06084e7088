package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// meeting is the job of goroutines in place of processes.
type meeting struct {
	mu      sync.Mutex
	met     *sync.Cond
	size    int
	came    int
	number  int
	words   []int64
	result  []int64
	unequal bool
}

func newMeeting(size int) *meeting {
	m := &meeting{size: size}
	m.met = sync.NewCond(&m.mu)
	return m
}

func (m *meeting) agree(words []int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.came == 0 {
		m.words = slices.Clone(words)
	}
	m.unequal = m.unequal || len(words) != len(m.words)
	for i := range min(len(words), len(m.words)) {
		m.words[i] = max(m.words[i], words[i])
	}
	m.came++
	if m.came == m.size {
		m.result, m.came = m.words, 0
		m.number++
		m.met.Broadcast()
	} else {
		for n := m.number; n == m.number; {
			m.met.Wait()
		}
	}
	if m.unequal {
		return errors.New("messages of unequal length")
	}
	copy(words, m.result)
	return nil
}

type oneOf struct {
	*meeting
	rank int
}

func (o oneOf) Rank() int                 { return o.rank }
func (o oneOf) Size() int                 { return o.size }
func (o oneOf) Agree(words []int64) error { return o.agree(words) }

// member is the state of one of several runs.
type member struct {
	value uint64
	job   loop.Job
}

func (m member) Job() loop.Job { return m.job }

// memberRun is the run of a program by one member.
type memberRun struct {
	program
	rank    int
	faulty  bool // faults of a part occur in this rank
	jitter  *rand.Rand
	cancel  context.CancelCauseFunc
	trace   []string
	blocks  int
	ending  loop.Ending
	source  sync.WaitGroup // the data has come back
	result  loop.Result[member]
	err     error
	outcome outcome
}

func (m *memberRun) sleep(most time.Duration) {
	if m.jitter != nil {
		time.Sleep(time.Duration(m.jitter.Int64N(int64(most))))
	}
}

func (m *memberRun) run(job loop.Job, timed bool) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	m.cancel = cancel
	var tasks []loop.Task[member, batch]
	for i := range m.tasks {
		tasks = append(tasks, m.taskOf(&m.tasks[i]))
	}
	options := []loop.Option{loop.Keep(m.keep)}
	if m.until != nil {
		options = append(options, loop.Until(m.until))
	}
	if timed { // the time of each call is in the state
		tasks = append(tasks, loop.On(loop.Every(loop.Time(100*time.Millisecond)), loop.StepFunc(func(_ context.Context, s member, _ batch) (member, loop.Logs, error) {
			s.value = s.value*31 + 11
			return s, loop.Logs{}, nil
		})))
		options = append(options, loop.Callback{When: loop.Every(loop.Time(70 * time.Millisecond)), Changes: true, Start: func(loop.Beginning) (loop.Attendant, error) { return timedChange{}, nil }},
			loop.Watch(loop.Every(loop.Time(30*time.Millisecond)), func(_ context.Context, r loop.Report) error {
				m.trace = append(m.trace, fmt.Sprint("at ", r.Elapsed.Time))
				return nil
			}))
	}
	for i := range m.watchers {
		w := &m.watchers[i]
		c := attend(w.name, w.when, func() loop.Attendant { return memberWatch{w, m} })
		if w.entry != "" {
			c.When, c.Entry = loop.Schedule{}, w.entry
		}
		options = append(options, c)
	}
	m.result, m.err = loop.New(tasks...).Run(ctx, member{0, job}, loop.Data[batch](m.data), options...)
	r := m.result
	m.outcome = outcome{state: r.State.value, at: counts(r.Elapsed), reason: r.Reason}
	if r.Stop != nil {
		m.outcome.stop = r.Stop.Error()
	}
}

type timedChange struct{}

func (timedChange) Watch(_ context.Context, r loop.Report) error {
	m := r.State().(member)
	m.value = m.value*31 + 13
	return r.SetState(m)
}
func (timedChange) End(context.Context, loop.Ending) error { return nil }

func (m *memberRun) data(yield func(batch, error) bool) {
	m.source.Add(1)
	defer m.source.Done()
	for i := 0; i <= len(m.sizes); i++ {
		m.sleep(30 * time.Millisecond)
		var err error
		size := 0
		if i < len(m.sizes) {
			size = m.sizes[i]
		}
		if i == m.faultAt && m.faulty {
			switch m.fault {
			case "error":
				err = errBoom
			case "panic":
				panic("boom")
			case "cancel":
				m.cancel(errHome)
			case "hang":
				m.cancel(errHome)
				time.Sleep(time.Hour)
			case "negative":
				size = -1
			case "ends":
				return
			case "larger":
				size++
			}
		}
		if i == len(m.sizes) && err == nil || !yield(batch{i, size}, err) {
			return
		}
	}
}

func (m *memberRun) taskOf(p *part) loop.Task[member, batch] {
	switch {
	case p.turn:
		return loop.OnTurn(p.when, func(_ context.Context, turn *loop.Turn[member, batch]) error {
			s, logs, err := m.compute(p, turn.State, turn.Batch, read(turn.Logs))
			if err == nil || errors.Is(err, loop.ErrStop) {
				turn.State = s
				turn.Logs.Merge(logs)
			}
			return err
		}).Named(p.name)
	case p.block > 0:
		return loop.On[member, batch](p.when, memberBlock{memberStep{p, m}}).Named(p.name)
	}
	return loop.On[member, batch](p.when, memberStep{p, m}).Named(p.name)
}

func (m *memberRun) compute(p *part, s member, b batch, seen []logged) (member, loop.Logs, error) {
	time.Sleep(p.takes)
	m.sleep(time.Millisecond)
	var err error
	if b.index == p.at {
		err = m.happens(p)
	}
	if err != nil && !errors.Is(err, loop.ErrStop) {
		return member{}, loop.Logs{}, err
	}
	m.trace = append(m.trace, fmt.Sprint(p.name, " ", b.index, " ", s.value))
	var values []logged
	s.value, values = p.computed(s.value, b, seen)
	var logs loop.Logs
	for _, l := range values {
		logs.Metric(l.name, l.value)
	}
	return s, logs, err
}

func (m *memberRun) happens(p *part) error {
	if !m.faulty {
		return nil
	}
	switch p.does {
	case "error":
		return errBoom
	case "panic":
		panic("boom")
	case "cancel":
		m.cancel(errHome)
	case "stop":
		return loop.ErrStop
	}
	return nil
}

type memberStep struct {
	*part
	run *memberRun
}

func (s memberStep) Step(_ context.Context, state member, b batch) (member, loop.Logs, error) {
	return s.run.compute(s.part, state, b, nil)
}

type memberBlock struct{ memberStep }

func (s memberBlock) BlockSize() int { return s.block }

func (s memberBlock) StepBlock(ctx context.Context, state member, batches []batch) (member, []loop.Logs, error) {
	if len(batches) > 1 {
		s.run.blocks++
	}
	return stepEach(ctx, s.Step, state, batches)
}

type memberWatch struct {
	*part
	run *memberRun
}

func (w memberWatch) Watch(_ context.Context, r loop.Report) error {
	w.run.trace = append(w.run.trace, fmt.Sprint(w.name, " ", r.Elapsed.Steps, " ", r.State().(member).value))
	if int(r.Elapsed.Steps) == w.at {
		return w.run.happens(w.part)
	}
	return nil
}

func (w memberWatch) End(_ context.Context, e loop.Ending) error {
	w.run.ending = e
	if w.does == "end" && w.run.faulty {
		return errBoom
	}
	return nil
}

// runMembers runs a program in this number of members at once; faulty lists the members that have its faults.
func runMembers(p program, n int, faulty func(rank int) bool, seed uint64, timed, together bool) []*memberRun {
	m := newMeeting(n)
	runs := make([]*memberRun, n)
	var all sync.WaitGroup
	for rank := range runs {
		r := &memberRun{program: p, rank: rank, faulty: faulty(rank)}
		if seed > 0 {
			r.jitter = rand.New(rand.NewPCG(seed, uint64(rank)))
		}
		runs[rank] = r
		var job loop.Job
		if together {
			job = oneOf{m, rank}
		}
		all.Go(func() { r.run(job, timed) })
	}
	all.Wait()
	for _, r := range runs {
		r.source.Wait()
	}
	return runs
}

func (p program) cancels() bool {
	does := func(x part) bool { return x.does == "cancel" }
	return p.fault == "cancel" || p.fault == "hang" || slices.ContainsFunc(p.tasks, does) || slices.ContainsFunc(p.watchers, does)
}

// Without a job the same runs differ: the control of TestJob_agrees.
func TestJob_alone(t *testing.T) {
	different := 0
	for i := range 20 {
		synctest.Test(t, func(t *testing.T) {
			p := program{keep: loop.EachStep, sizes: make([]int, 40), tasks: []part{{name: "task1", when: loop.EachStep, takes: time.Millisecond}}}
			runs := runMembers(p, 2, func(int) bool { return false }, uint64(1+i), true, false)
			if runs[0].outcome.state != runs[1].outcome.state {
				different++
			}
			together := runMembers(p, 2, func(int) bool { return false }, uint64(1+i), true, true)
			require.Equal(t, together[0].outcome, together[1].outcome)
		})
	}
	require.Greater(t, different, 15)
}
