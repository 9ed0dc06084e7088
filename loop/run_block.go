package loop

import (
	"context"
	"fmt"
	"time"
)

// blocks gathers batches for a [BlockStepper].
type blocks[B any] struct {
	on      bool
	tasks   []blockTask
	current int // the task of the batches
	// The spare lists are those of the block that is being made; both swap with each block.
	batches, spareBatches []B
	turns, spareTurns     []pendingTurn
	dueAfter              []int // the tasks that are due in the last turn, after the block
}

// blockTask is a task, as far as blocks are concerned.
type blockTask struct {
	size int // its BlockSize; below 2 it makes one step at a time
	// limit is the present length of its blocks: 1 at first, it grows as long as blocks take less than blockTime.
	limit int
}

// pendingTurn is a turn whose batch waits in a block.
type pendingTurn struct {
	elapsed Elapsed
	samples int64
}

// blockTime bounds how long a block is gathered, and how long it is expected to take: schedules of time and the context
// are looked at between blocks only.
const blockTime = 50 * time.Millisecond

func (b *blocks[B]) pending() bool { return len(b.batches) > 0 }

func (r *run[S, B]) startBlocks() {
	b := &r.blocks
	b.tasks = make([]blockTask, len(r.tasks))
	for i := range r.tasks {
		if s := r.tasks[i].block; s != nil {
			b.tasks[i] = blockTask{s.BlockSize(), 1}
		}
		b.on = b.on || b.tasks[i].size > 1
	}
	r.readsClock = r.readsClock || b.on
}

// blockOf returns the task whose block a turn can be part of, -1 if there is none: it must be the only block stepper
// due in the turn. Where a block has batches already, nothing may be due before it, which would run between two of its
// steps.
func (r *run[S, B]) blockOf(before, after Elapsed) int {
	task := -1
	for i := range r.tasks {
		switch {
		case !r.tasks[i].when.Due(before, after):
		case r.blocks.tasks[i].size > 1:
			if task >= 0 {
				return -1
			}
			task = i
		case r.blocks.pending() && task < 0:
			return -1
		}
	}
	return task
}

// callbackDue reports whether a callback is due after a turn, as far as that can be known before its step.
func (r *run[S, B]) callbackDue(last, now Elapsed) bool {
	before := r.lastTurn.callbacks
	before.count(last)
	for i := range r.hooks {
		if h := &r.hooks[i]; !h.waitsForEntry() && r.isDue(h, before, now) {
			return true
		}
	}
	return false
}

// flush makes the steps of the pending batches; end reports that the run is over after them.
func (r *run[S, B]) flush(ctx context.Context) (end bool, err error) {
	b := &r.blocks
	if !b.pending() {
		return false, nil
	}
	batches, turns := b.batches, b.turns
	b.batches, b.spareBatches = b.spareBatches[:0], batches // whatever happens now, they are no longer pending
	b.turns, b.spareTurns = b.spareTurns[:0], turns
	defer clear(batches)

	t := &r.tasks[b.current]
	r.turn.Batch, r.elapsed = batches[0], turns[0].elapsed
	r.at(Activity{when: &t.when, name: t.name})
	r.expected.ran(b.current)
	begin := time.Now()
	state, logs, err := t.block.StepBlock(stepContext(ctx), r.turn.State, batches)
	stop := isStop(err)
	if len(logs) > len(turns) || err == nil && len(logs) < len(turns) {
		wrong := fmt.Errorf("a block of %d batches must give logs for each, got %d", len(turns), len(logs))
		if err != nil && !stop {
			wrong = fmt.Errorf("%w; and %w", err, wrong)
		}
		logs, err, stop = nil, wrong, false
	}
	if len(logs) > 0 || stop {
		r.turn.State = state
	}
	done := turns[:len(logs)]
	failed := err != nil && !stop
	if err := r.keepBlockTurns(batches, done, logs, !failed); err != nil {
		return false, err
	}
	if failed && len(done) < len(turns) {
		r.elapsed = turns[len(done)].elapsed // of the turn that failed
	}
	if err := r.stopOrFail(ctx, err, &stop); err != nil {
		return false, err
	}
	if len(done) == 0 && !r.changed { // it stopped before its first step, and no other task ran in that turn
		r.elapsed = r.lastTurn.tasks
		return r.concluded(stop)
	}
	r.adaptBlockLimit(time.Since(begin), logs)
	count := max(len(done), 1)
	if count == len(turns) {
		for _, i := range b.dueAfter {
			if err := r.runTask(ctx, i, &stop); err != nil {
				return false, err
			}
		}
	}
	return r.afterTasks(ctx, turns[count-1].samples, stop)
}

// flushBeforeError makes the steps of the batches that were pending when the run failed: without blocks they would have
// been made before the failure, so their outcome comes first.
func (r *run[S, B]) flushBeforeError(ctx context.Context, failure error) error {
	end, err := r.flush(ctx)
	switch {
	case err != nil:
		return err
	case end:
		_, err = r.runAtEdge(ctx, Schedule.endsAt)
		return err
	}
	r.reason = Failed
	return failure
}

// keepBlockTurns adds the turns of a block to the history. With finish, the last one is left as a turn whose tasks have
// run.
func (r *run[S, B]) keepBlockTurns(batches []B, done []pendingTurn, logs []Logs, finish bool) (err error) {
	from, to := r.lastTurn.history, r.clock.at(r.elapsed)
	for i, turn := range done {
		if i > 0 {
			r.turn.Logs = Logs{} // before the first step, other tasks may have logged
		}
		r.turn.Batch, r.turn.Elapsed = batches[i], turn.elapsed
		r.turn.Logs.Merge(logs[i])
		r.elapsed, r.changed = turn.elapsed, true
		if finish && err == nil && i == len(done)-1 {
			return nil
		}
		// The time of single steps is not known: they share that of the block.
		part := time.Duration(i+1) * (to.Time - from.Time) / time.Duration(len(done))
		r.elapsed.Time, r.elapsed.Date = from.Time+part, from.Date+Date(part)
		if name := r.watchedName(logs[i]); name != "" && err == nil {
			r.reason = Failed // the other steps are in the state too, and are counted
			err = r.wrap(fmt.Errorf("%s is logged in some steps only: a BlockStepper must log the same names in each", name))
		}
		r.keepTurn(turn.samples)
		r.noteLatest(r.turn.Logs)
		r.lastTurn.callbacks.count(turn.elapsed)
		r.lastTurn.tasks, r.changed, r.turn.Logs = turn.elapsed, false, Logs{}
	}
	return err
}

// adaptBlockLimit sets the limit of a task by the time that its last block took. It stays 1 where a callback waits for
// a name that the block logs: that is called after each step.
func (r *run[S, B]) adaptBlockLimit(took time.Duration, logs []Logs) {
	t := &r.blocks.tasks[r.blocks.current]
	if len(logs) == 0 || t.limit == 1 && r.watchedName(logs[0]) != "" {
		return
	}
	if p := r.party; p != nil { // the longest time decides, once it is known
		p.block, p.steps, p.took = r.blocks.current, len(logs), time.Since(p.gathered)
		return
	}
	r.limitBlock(r.blocks.current, took, len(logs))
}

// limitBlock sets the limit of a task whose newest block took so long.
func (r *run[S, B]) limitBlock(task int, took time.Duration, steps int) {
	t := &r.blocks.tasks[task]
	most := int64(t.size)
	if perStep := int64(took) / int64(steps); perStep > 0 {
		most = min(most, int64(blockTime)/perStep)
	}
	t.limit = int(max(min(most, 2*int64(t.limit)), 1))
}

// watchedName returns a name among the logs that a callback waits for, "" if there is none.
func (r *run[S, B]) watchedName(logs Logs) string {
	for i := range r.hooks {
		if h := &r.hooks[i]; h.waitsForEntry() && h.When.rule != nil && hasEntry(h.Entry, logs) {
			return h.Entry
		}
	}
	return ""
}

// runBlockOfOne makes a single step by StepBlock.
func runBlockOfOne[S, B any](ctx context.Context, s BlockStepper[S, B], turn *Turn[S, B]) error {
	state, logs, err := s.StepBlock(ctx, turn.State, []B{turn.Batch})
	if err == nil && len(logs) != 1 {
		return fmt.Errorf("a block of 1 batch must give logs for it, got %d", len(logs))
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
