package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// This file alone knows how a traced program is given to the loop, and how the loop's values become text. If a name of
// the loop changes, this file changes, but not the text that it writes.

// tracedState is the state of a traced run. Its job is nil where the run is alone.
type tracedState struct {
	value uint64
	job   loop.Job
}

func (s tracedState) Job() loop.Job { return s.job }

// tracer makes the runs of a program in one process, and writes the values that the program can see.
type tracer struct {
	traced
	faulty bool // faults of a part occur here
	jitter *rand.Rand
	cancel context.CancelCauseFunc
	source sync.WaitGroup // the data has come back
	asked  bool           // of tasks that may ask for a call outside of their schedule
	result loop.Result[tracedState]
	lines  strings.Builder
	blocks int // of more than one step
}

// trace is the text of all that the program sees in its run, or in the two runs into which it is divided. It does not
// depend on the clock. blocks is the number of blocks of more than one step, which does.
func (p traced) trace(t *testing.T) (trace string, blocks int) {
	var text strings.Builder
	synctest.Test(t, func(*testing.T) {
		tracers := make([]*tracer, max(p.ranks, 1))
		for rank := range tracers {
			r := &tracer{traced: p, faulty: p.culprit < 0 || p.culprit == rank}
			if p.ranks > 0 {
				r.jitter = rand.New(rand.NewPCG(p.seed, uint64(rank)))
			}
			tracers[rank] = r
		}
		if p.cut >= 0 {
			runTracers(tracers, p.sizes[:p.cut])
		}
		runTracers(tracers, p.sizes)
		for rank, r := range tracers {
			if p.ranks > 0 {
				fmt.Fprintf(&text, "rank %d\n", rank)
			}
			text.WriteString(r.lines.String())
			blocks += r.blocks
		}
	})
	return text.String(), blocks
}

// runTracers makes one run, by all processes at once.
func runTracers(tracers []*tracer, sizes []int) {
	var all sync.WaitGroup
	m := newMeeting(len(tracers))
	for rank, r := range tracers {
		state := tracedState{value: r.result.State.value}
		if r.ranks > 0 {
			state.job = oneOf{m, rank}
		}
		all.Go(func() { r.run(state, sizes) })
	}
	all.Wait()
	for _, r := range tracers {
		r.source.Wait()
	}
}

// plan is the text of the plan.
func (p traced) plan() string {
	r := &tracer{traced: p}
	plan, err := loop.New(r.loopTasks()...).Plan(r.options()...)
	return fmt.Sprintf("%splan: %s\n", plan, errorText(err))
}

func (r *tracer) run(state tracedState, sizes []int) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r.cancel, r.asked = cancel, false
	from := int(r.result.Elapsed.Steps)
	r.see("run of batches %d to %d", from, len(sizes))
	options := r.options()
	if r.result.History != nil { // it continues
		var stop []error
		if r.ended && r.result.Stop != nil {
			stop = append(stop, r.result.Stop)
		}
		options = append(options, loop.Continue(counts(r.result.Elapsed), r.result.History, stop...))
	}
	result, err := loop.New(r.loopTasks()...).Run(ctx, state, rest(r.data(sizes, from)), options...)
	r.result = result
	r.see("result: state %x, %s, %s, stop %s, error %s", result.State.value, elapsedText(result.Elapsed), result.Reason, r.errorText(result.Stop), r.errorText(err))
	var sizesKept []float64
	if result.History.Len() > 0 {
		lists, err := result.History.Collect("elapsed.batch")
		if err != nil {
			panic(err)
		}
		sizesKept = lists[0]
	}
	i := 0
	for at, logs := range result.History.Rows() {
		r.see("row: %s, batch of %v, logs %s", elapsedText(at), sizesKept[i], logsText(logs))
		i++
	}
}

func (r *tracer) loopTasks() (tasks []loop.Task[tracedState, batch]) {
	for i := range r.tasks {
		p := &r.tasks[i]
		step := tracedStep{p, r}
		switch {
		case p.turn:
			tasks = append(tasks, loop.OnTurn(p.when, step.turnOf).Named(p.name))
		case p.block > 0:
			tasks = append(tasks, loop.On[tracedState, batch](p.when, tracedBlock{step}).Named(p.name))
		default:
			tasks = append(tasks, loop.On[tracedState, batch](p.when, step).Named(p.name))
		}
	}
	return tasks
}

func (r *tracer) options() []loop.Option {
	options := []loop.Option{loop.Keep(r.keep)}
	if r.until != nil {
		options = append(options, loop.Until(r.until))
	}
	if r.limit > 0 {
		options = append(options, loop.Thin(r.limit))
	}
	if r.monitored {
		options = append(options, loop.MonitorsWhen(r.monitors))
	}
	for i := range r.attached {
		a := &r.attached[i]
		when := a.when
		if a.entry != "" {
			when = loop.Schedule{}
		}
		watch := tracedWatch{a, r}
		if a.changes {
			options = append(options, loop.Callback{Changes: true, Name: a.name, When: when, Entry: a.entry, Needs: a.needs, Monitor: a.monitor, Order: [...]int{0, -1, 1}[a.place],
				Start: func(b loop.Beginning) (loop.Attendant, error) { return tracedChange{watch}, watch.start(b) }})
			continue
		}
		options = append(options, loop.Callback{Name: a.name, When: when, Entry: a.entry, Monitor: a.monitor, Order: [...]int{0, -1, 1}[a.place], AtRank0: a.rank0,
			Start: func(b loop.Beginning) (loop.Attendant, error) {
				if a.observes {
					return tracedObserver{watch}, watch.start(b)
				}
				return watch, watch.start(b)
			}})
	}
	return options
}

// data yields the batches from one on.
func (r *tracer) data(sizes []int, from int) loop.Data[batch] {
	return func(yield func(batch, error) bool) {
		r.source.Add(1)
		defer r.source.Done()
		for i := from; i <= len(sizes); i++ {
			r.sleep(30 * time.Millisecond)
			var err error
			size, fault := 0, ""
			if i < len(sizes) {
				size = sizes[i]
			}
			if i == r.faultAt && r.faulty {
				fault = r.fault
			}
			r.seeOnce("data: batch %d %s", i, fault)
			switch fault {
			case "error":
				err = errBoom
			case "panic":
				panic("boom")
			case "cancel":
				r.cancel(errHome)
			case "hang": // for so long that the run does not wait for it, and then writes no more
				r.cancel(errHome)
				time.Sleep(time.Hour)
				yield(batch{i, size}, nil)
				return
			case "negative":
				size = -1
			case "ends":
				return
			case "larger":
				size++
			}
			if i == len(sizes) && err == nil {
				return
			}
			if !yield(batch{i, size}, err) {
				r.seeOnce("data: no more")
				return
			}
		}
	}
}

func (r *tracer) sleep(most time.Duration) {
	if r.jitter != nil {
		time.Sleep(time.Duration(r.jitter.Int64N(int64(most))))
	}
}

func (r *tracer) see(format string, args ...any) {
	fmt.Fprintf(&r.lines, format, args...)
	r.lines.WriteByte('\n')
}

// seeOnce writes values that differ with blocks and without.
func (r *tracer) seeOnce(format string, args ...any) {
	if r.single {
		r.see(format, args...)
	}
}

// happens is the fault of a part.
func (r *tracer) happens(does string) error {
	switch does {
	case "error":
		return errBoom
	case "panic":
		panic("boom")
	case "cancel":
		r.cancel(errHome)
	case "stop":
		return loop.ErrStop
	}
	return nil
}

// tracedStep is a task.
type tracedStep struct {
	*part
	run *tracer
}

func (s tracedStep) Step(ctx context.Context, state tracedState, b batch) (tracedState, loop.Logs, error) {
	s.run.see("%s: batch %d, state %x%s", s.name, b.index, state.value, s.run.contextText(ctx))
	return s.compute(state, b, nil)
}

func (s tracedStep) turnOf(ctx context.Context, turn *loop.Turn[tracedState, batch]) error {
	s.run.see("%s: batch %d, state %x, %s, logs %s%s", s.name, turn.Batch.index, turn.State.value, elapsedText(turn.Elapsed), logsText(turn.Logs), s.run.contextText(ctx))
	state, logs, err := s.compute(turn.State, turn.Batch, read(turn.Logs))
	if err == nil || errors.Is(err, loop.ErrStop) {
		turn.State = state
		turn.Logs.Merge(logs)
	}
	return err
}

func (s tracedStep) Await(_ context.Context, state tracedState) error {
	s.run.see("%s: await, state %x", s.name, state.value)
	if s.does == "await" && s.run.faulty {
		return errBoom
	}
	return nil
}

// compute is a task's work; with an error it gives a state that must not be used.
func (s tracedStep) compute(state tracedState, b batch, seen []logged) (tracedState, loop.Logs, error) {
	time.Sleep(s.takes)
	s.run.sleep(time.Millisecond)
	var err error
	if b.index == s.at && s.run.faulty {
		err = s.run.happens(s.does)
	}
	if err != nil && !errors.Is(err, loop.ErrStop) {
		return tracedState{999, state.job}, loop.Logs{}, err
	}
	s.run.asked = s.run.asked || b.index == s.run.asksAt
	var values []logged
	state.value, values = s.computed(state.value, b, seen)
	var logs loop.Logs
	for _, l := range values {
		logs.Metric(l.name, l.value)
	}
	return state, logs, err
}

type tracedBlock struct{ tracedStep }

func (s tracedBlock) BlockSize() int { return s.block }

func (s tracedBlock) StepBlock(ctx context.Context, state tracedState, batches []batch) (tracedState, []loop.Logs, error) {
	if len(batches) == 0 || len(batches) > s.block {
		return state, nil, fmt.Errorf("a block of %d batches, allowed are 1 to %d", len(batches), s.block)
	}
	if len(batches) > 1 {
		s.run.blocks++
	}
	return stepEach(ctx, s.Step, state, batches)
}

// tracedWatch is a callback.
type tracedWatch struct {
	*attached
	run *tracer
}

func (w tracedWatch) start(b loop.Beginning) error {
	rows, job := -1, "alone"
	if b.History != nil {
		rows = b.History.Len()
	}
	if b.Job != nil {
		job = fmt.Sprintf("rank %d of %d", b.Job.Rank(), b.Job.Size())
	}
	w.run.see("%s: start, state %x, from %s, %d rows, until %q, %s", w.name, b.State().(tracedState).value, elapsedText(b.From), rows, untilText(b.Until), job)
	if what, starts := strings.CutPrefix(w.does, "start "); starts && w.run.faulty {
		return w.run.happens(what)
	}
	return nil
}

func (w tracedWatch) Watch(ctx context.Context, r loop.Report) error {
	w.run.see("%s: %s%s", w.name, w.report(r), w.run.contextText(ctx))
	if w.observes {
		w.run.asked = false
	}
	if int(r.Elapsed.Steps) == w.at && w.run.faulty {
		return w.run.happens(w.does)
	}
	return nil
}

func (w tracedWatch) End(ctx context.Context, e loop.Ending) error {
	w.run.see("%s: end, %s, error %s, partial %t, normal %t; %s%s", w.name, e.Reason, w.run.errorText(e.Err), e.Partial, e.Normal(), w.report(e.Report), w.run.contextText(ctx))
	if w.does == "end" && w.run.faulty {
		return errBoom
	}
	return nil
}

func (w tracedWatch) report(r loop.Report) string {
	ahead := ""
	if w.run.single {
		ahead = fmt.Sprintf(", %d ahead", r.Ahead)
	}
	return fmt.Sprintf("%s since %s until %q, state %x, logs %s, latest %s, %d rows, stop %s%s", elapsedText(r.Elapsed), elapsedText(r.From), untilText(r.Until),
		r.State().(tracedState).value, logsText(r.Logs), logsText(r.Latest), r.History.Len(), w.run.errorText(r.Stop), ahead)
}

// tracedObserver sees the activities of the run, and may ask for a call.
type tracedObserver struct{ tracedWatch }

func (w tracedObserver) At(step int64, what abilities.Activity) {
	w.run.see("%s: at step %d, %q %q %q", w.name, step, what.Kind, what.Name, what)
}

func (w tracedObserver) Interrupts() bool { return w.run.asked }

// tracedChange changes the state.
type tracedChange struct{ watch tracedWatch }

func (c tracedChange) Watch(ctx context.Context, r loop.Report) error {
	err := c.watch.Watch(ctx, r)
	if err != nil && !errors.Is(err, loop.ErrStop) {
		return err
	}
	state := r.State().(tracedState)
	state.value = state.value*31 + uint64(c.watch.name[len(c.watch.name)-1])
	return errors.Join(err, r.SetState(state))
}

func (c tracedChange) End(ctx context.Context, e loop.Ending) error {
	return c.watch.End(ctx, e)
}

// The output of the loop as text, without times.

func elapsedText(e loop.Elapsed) string { return fmt.Sprintf("%d/%d", e.Steps, e.Samples) } // steps and samples

func untilText(p loop.Period) string {
	if p == nil {
		return ""
	}
	return p.String()
}

func logsText(logs loop.Logs) string {
	var text strings.Builder
	for e := range logs.All() {
		v, err := e.Value.Float()
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&text, " %s=%v", e.Path(), v)
	}
	return "[" + strings.TrimPrefix(text.String(), " ") + "]"
}

// contextText reports whether a call could see that the context has ended. The data may end it while batches wait in a
// block.
func (r *tracer) contextText(ctx context.Context) string {
	if !r.single || ctx.Err() == nil {
		return ""
	}
	return fmt.Sprintf(", the context ended: %v", context.Cause(ctx))
}

// errorText is the text and the kind of an error. Code that waits in a block learns of a fault of the data later.
func (r *tracer) errorText(err error) string {
	text := errorText(err)
	if !r.single {
		return strings.ReplaceAll(text, "; "+loop.ErrSourceLeft.Error(), "")
	}
	if errors.Is(err, loop.ErrSourceLeft) {
		text += " left"
	}
	return text
}

func errorText(err error) string {
	if err == nil {
		return "none"
	}
	text := fmt.Sprintf("%q", err.Error())
	for _, is := range []struct {
		name string
		err  error
	}{{"boom", errBoom}, {"home", errHome}, {"stop", loop.ErrStop}, {"entry", loop.ErrNoEntry}} {
		if errors.Is(err, is.err) {
			text += " " + is.name
		}
	}
	if panicked := (*loop.PanicError)(nil); errors.As(err, &panicked) {
		text += fmt.Sprintf(" panic %v", panicked.Value)
	}
	if ranked := (*loop.RankError)(nil); errors.As(err, &ranked) {
		text += fmt.Sprintf(" rank %d %q", ranked.Rank, ranked.Message)
	}
	return text
}
