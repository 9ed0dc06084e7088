package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/lazo-ml/lazo/internal/reused"
)

// In blocks, nothing else is due between first and last step.
type blocks[B any] struct {
	on      bool
	tasks   []blockTask
	current int
	batches []B
	elapsed []Elapsed
	since   time.Time
	// singles: the source reuses memory, so no batch may wait.
	reused  reused.Watch
	singles bool
}

type blockTask struct {
	size  int
	limit int
}

// blockTime bounds the times to gather and to run a block: clocks and the context are checked between.
const blockTime = 50 * time.Millisecond

func (b *blocks[B]) pending() bool { return len(b.batches) > 0 }

func (r *run[S, B]) startBlocks() {
	b := &r.blocks
	b.tasks = make([]blockTask, len(r.tasks))
	for i := range r.tasks {
		s := r.tasks[i].block
		if s == nil {
			continue
		}
		if size := s.BlockSize(); size > 1 {
			b.on, b.tasks[i] = true, blockTask{size, 1}
			r.tasks[i].do = func(ctx context.Context, turn *Turn[S, B]) error { return blockOfOne(ctx, s, turn) }
		}
	}
	r.readsClock = r.readsClock || b.on
}

func blockOfOne[S, B any](ctx context.Context, s blockStepper[S, B], turn *Turn[S, B]) error {
	state, logs, err := s.StepBlock(ctx, turn.State, []B{turn.Batch})
	if err == nil && len(logs) != 1 {
		return fmt.Errorf("a block of 1 batch must return logs for it, got %d", len(logs))
	}
	if err != nil && !isStop(err) {
		return err
	}
	turn.State = state
	for _, l := range logs {
		turn.Logs.Merge(l)
	}
	return err
}

func (r *run[S, B]) gather(samples int64) (end bool, err error) {
	b := &r.blocks
	if !r.single && !b.reused.Done() {
		if err = r.watchMemory(); err != nil {
			return r.agreement.refuse(r.wrap(err))
		}
	}
	last := r.last.tasks
	if b.pending() {
		last = b.elapsed[len(b.elapsed)-1]
	}
	var now Elapsed
	r.count(&now, &last, samples)
	task, before, after := r.blockOf(last, now)
	if task < 0 || before || b.pending() && task != b.current {
		if end, err = r.share(1, now.Samples); end || err != nil {
			return end, err
		}
	}
	if b.pending() && task != b.current {
		r.nextTaken, r.acted = true, true
		end, err = r.flush()
		if r.nextTaken = false; end || err != nil {
			return end, err
		}
		task, before, after = r.blockOf(last, now)
	}
	if !b.pending() {
		r.open(&now)
	}
	if task < 0 {
		r.turn.Batch = *r.batch
		return r.iterate(0, false)
	}
	stop := false
	if before {
		if stop, err = r.runBefore(task); err != nil {
			return false, err
		}
	}
	return r.add(task, last, now, stop, !stop && !after)
}

// watchMemory turns blocks off if the newest batch was written over an earlier one. This is an error in a job, whose
// blocks end together, or if the earlier one waits.
func (r *run[S, B]) watchMemory() error {
	b := &r.blocks
	first, last := b.reused.Next(*r.batch)
	waits := r.taken - int64(len(b.batches))
	switch {
	case last == 0:
		return nil
	case int64(last) >= waits:
		first = int(max(int64(first), waits))
		r.leaveOut(r.taken - int64(first))
		return errReused(first, "whose step waits")
	case r.job != nil:
		return errReused(last, "and the blocks of all processes have equal lengths")
	}
	b.singles = true
	return nil
}

func errReused(batch int, why string) error {
	return fmt.Errorf("the source has written into batch %d, %s: give each batch its own memory, or the run the option SingleSteps", batch, why)
}

// blockOf returns the due block stepper that can take the iteration, or -1. before, after: other tasks are due there.
// With waiting batches, before is impossible.
func (r *run[S, B]) blockOf(last, now Elapsed) (task int, before, after bool) {
	task = -1
	for i := range r.tasks {
		switch isBlock := r.blocks.tasks[i].size > 1; {
		case !r.tasks[i].when.Due(last, now):
		case isBlock && task >= 0, !isBlock && task < 0 && r.blocks.pending():
			return -1, false, false
		case isBlock:
			task = i
		case task < 0:
			before = true
		default:
			after = true
		}
	}
	return task, before, after
}

func (r *run[S, B]) runBefore(task int) (stop bool, err error) {
	r.turn.Batch = *r.batch
	for i := range task {
		if r.tasks[i].when.Due(r.last.tasks, r.elapsed) {
			if err = r.runTask(i, &stop); err != nil {
				return false, err
			}
		}
	}
	r.acted = true
	return r.agreement.border(stop)
}

func (r *run[S, B]) add(task int, last, now Elapsed, stop, may bool) (end bool, err error) {
	b := &r.blocks
	if !b.pending() {
		b.current, b.since = task, time.Now()
	}
	b.batches, b.elapsed = append(b.batches, *r.batch), append(b.elapsed, now)
	// Over several processes, no clock ends a block.
	if may && !b.singles && len(b.batches) < b.tasks[task].limit && !r.interrupted && (r.job != nil || now.Time-b.elapsed[0].Time < blockTime) &&
		!r.untilReached(&now) && !r.callbackDue(&last, &now) && (len(r.expected.expected) == 0 || r.expected.pending > 0) && r.watchedName(r.turn.Logs) == "" {
		if r.reading.on {
			r.reading.waiting.Store(true)
		}
		return false, nil
	}
	if end, err = r.share(0, now.Samples); end || err != nil {
		return end, err
	}
	if end, err = r.flush(); stop && err == nil {
		r.reason = Stopped
	}
	return end || stop, err
}

func (r *run[S, B]) callbackDue(last, now *Elapsed) bool {
	if len(r.hooks) == 0 {
		return false
	}
	before := r.last.callbacks
	before.count(*last)
	for i := range r.hooks {
		if h := &r.hooks[i]; !h.waitsForEntry() && r.isDue(h, before, *now) {
			return true
		}
	}
	return false
}

func (r *run[S, B]) flush() (end bool, err error) {
	b := &r.blocks
	if !b.pending() {
		return false, nil
	}
	batches, elapsed := b.batches, b.elapsed
	b.batches, b.elapsed = batches[:0], elapsed[:0]
	defer clear(batches)
	if r.reading.on && r.reading.maker.Load() == nil {
		r.reading.waiting.Store(false)
	}

	r.turn.Batch, r.elapsed = batches[0], elapsed[0]
	begin := time.Now()
	state, logs, err := r.stepBlock(batches)
	r.reading.made()
	stop := isStop(err)
	if len(logs) > 0 || stop {
		r.turn.State = state
	}
	done := len(logs)
	failed := err != nil && !stop
	if lost := r.keepBlock(batches, elapsed[:done], logs, !failed); lost != nil {
		return false, lost
	}
	if failed && done < len(elapsed) {
		r.elapsed = elapsed[done]
	}
	if err = r.stopOrFail(err, &stop); err != nil {
		return false, err
	}
	if done == 0 && !r.changed {
		r.elapsed = r.last.tasks
		return r.conclude(stop)
	}
	// The limit stays 1 if a callback waits for a name in the block.
	if done > 0 && !r.single && (b.tasks[b.current].limit > 1 || r.watchedName(logs[0]) == "") {
		r.agreement.timed(done, time.Since(begin))
	}
	if max(done, 1) < len(elapsed) {
		return r.iterate(len(r.tasks), stop)
	}
	return r.iterate(b.current+1, stop)
}

func (r *run[S, B]) stepBlock(batches []B) (S, []Logs, error) {
	t := &r.tasks[r.blocks.current]
	r.at(t.activity())
	r.expected.ran(r.blocks.current)
	state, logs, err := t.block.StepBlock(stepContext(r.work), r.turn.State, batches)
	if len(logs) > len(batches) || err == nil && len(logs) < len(batches) {
		wrong := fmt.Errorf("a block of %d batches must return logs for each, got %d", len(batches), len(logs))
		if err != nil && !isStop(err) {
			wrong = fmt.Errorf("%w; and %w", err, wrong)
		}
		return state, nil, wrong
	}
	return state, logs, err
}

// finish leaves the last one as an iteration whose tasks have run.
func (r *run[S, B]) keepBlock(batches []B, elapsed []Elapsed, logs []Logs, finish bool) (err error) {
	from, to := r.last.history, r.clock.at(r.elapsed)
	for i, now := range elapsed {
		if i > 0 {
			r.turn.Logs = Logs{}
		}
		r.turn.Batch, r.turn.Elapsed = batches[i], now
		r.turn.Logs.Merge(logs[i])
		r.elapsed, r.changed = now, true
		if finish && err == nil && i == len(elapsed)-1 {
			return nil
		}
		part := time.Duration(i+1) * (to.Time - from.Time) / time.Duration(len(elapsed))
		r.elapsed.Time, r.elapsed.Date = from.Time+part, from.Date+Date(part)
		if name := r.watchedName(logs[i]); name != "" && err == nil {
			r.reason = Failed
			err = r.wrap(fmt.Errorf("%s is logged in some steps only: StepBlock must log the same names in each", name))
		}
		r.keepRow()
		r.noteLatest(r.turn.Logs)
		r.last.callbacks.count(now)
		r.last.tasks, r.changed, r.turn.Logs = now, false, Logs{}
	}
	return err
}

func (r *run[S, B]) limitBlock(task, steps int, took time.Duration) {
	t := &r.blocks.tasks[task]
	most := int64(t.size)
	if perStep := int64(took) / int64(steps); perStep > 0 {
		most = min(most, int64(blockTime)/perStep)
	}
	t.limit = int(max(min(most, 2*int64(t.limit)), 1))
}

func (r *run[S, B]) watchedName(logs Logs) string {
	for i := range r.hooks {
		if h := &r.hooks[i]; h.waitsForEntry() && h.When.rule != nil && hasEntry(h.Entry, logs) {
			return h.Entry
		}
	}
	return ""
}

func (r *run[S, B]) leaveOut(n int64) {
	b := &r.blocks
	if n > 0 && b.pending() {
		keep := max(int64(len(b.batches))-n, 0)
		clear(b.batches[keep:])
		b.batches, b.elapsed = b.batches[:keep], b.elapsed[:keep]
		if keep == 0 {
			r.reading.waiting.Store(false)
		}
	}
	if !b.pending() && !r.changed {
		r.elapsed = r.last.tasks
	}
}
