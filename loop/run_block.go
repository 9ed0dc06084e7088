package loop

import (
	"context"
	"fmt"
	"time"
)

// blocks gathers batches for a [BlockStepper].
type blocks[B any] struct {
	on    bool
	tasks []blockTask
	task  int // whose batches are waiting
	// The lists are used in turns with the spare ones, which are those of the block that is being made.
	batches, spareBatches []B
	turns, spareTurns     []gathered
	due                   []int // the tasks that are due behind the block in its last turn
}

// blockTask is what is known of one task.
type blockTask struct {
	size int // below 2 it makes one step at a time
	// limit is how many batches may wait. It begins with one and grows as long as steps are short.
	limit int
}

// gathered is a turn whose batch waits.
type gathered struct {
	elapsed Elapsed
	samples int64
}

// blockTime bounds how long a run is deaf: schedules of time, contexts and bars wait for the end of a block.
const blockTime = 50 * time.Millisecond

func (b *blocks[B]) waiting() bool { return len(b.batches) > 0 }

func (r *run[S, B]) startBlocks() {
	b := &r.blocks
	b.tasks = make([]blockTask, len(r.tasks))
	for i := range r.tasks {
		if s := r.tasks[i].block; s != nil {
			b.tasks[i] = blockTask{s.BlockSize(), 1}
		}
		b.on = b.on || b.tasks[i].size > 1
	}
	r.timed = r.timed || b.on
}

// blockOf is the task whose block the turn can be part of: the only block stepper that is due in it; and where batches wait
// already, with nothing due before it, which would have to run between two steps of the block. It is -1 if there is none.
func (r *run[S, B]) blockOf(before, after Elapsed) int {
	if !r.blocks.on {
		return -1
	}
	task := -1
	for i := range r.tasks {
		switch {
		case !r.tasks[i].when.Due(before, after):
		case r.blocks.tasks[i].size > 1:
			if task >= 0 {
				return -1
			}
			task = i
		case r.blocks.waiting() && task < 0:
			return -1
		}
	}
	return task
}

// callbackDue tells whether a callback is due behind a turn, as far as that can be known before its step.
func (r *run[S, B]) callbackDue(last, now Elapsed) bool {
	before := r.seen.callbacks
	before.Steps, before.Samples = last.Steps, last.Samples
	for i := range r.beside {
		if b := &r.beside[i]; (b.Entry == "" || b.sparse) && b.due(before, now) {
			return true
		}
	}
	return false
}

// flush makes the steps of the batches that wait; end tells that the last of their turns was that of the run.
func (r *run[S, B]) flush(ctx context.Context) (end bool, err error) {
	b := &r.blocks
	if !b.waiting() {
		return false, nil
	}
	batches, turns := b.batches, b.turns
	b.batches, b.spareBatches = b.spareBatches[:0], batches // whatever happens now, they do not wait any more
	b.turns, b.spareTurns = b.spareTurns[:0], turns
	defer clear(batches)

	t := &r.tasks[b.task]
	r.turn.Batch, r.elapsed = batches[0], turns[0].elapsed
	r.at(Activity{when: &t.when, name: t.name})
	r.entries.ran(b.task)
	begin := time.Now()
	state, logs, err := t.block.StepBlock(ofStep(ctx), r.turn.State, batches)
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
	if err := r.inside(batches, done, logs, !failed); err != nil {
		return false, err
	}
	if failed && len(done) < len(turns) {
		r.elapsed = turns[len(done)].elapsed // of the turn that failed
	}
	if err := r.stopOrFail(ctx, err, &stop); err != nil {
		return false, err
	}
	if len(done) == 0 && !r.changed { // it stopped before its first step, and nothing else was done in that turn
		r.elapsed = r.seen.tasks
		return r.ended(stop), nil
	}
	r.resize(time.Since(begin), logs)
	count := max(len(done), 1)
	if count == len(turns) {
		for _, i := range b.due {
			if err := r.doTask(ctx, i, &stop); err != nil {
				return false, err
			}
		}
	}
	return r.finishTurn(ctx, turns[count-1], stop)
}

// flushBeforeError makes the steps of the batches that waited when the run failed behind them: as without blocks, what they come to
// goes before.
func (r *run[S, B]) flushBeforeError(ctx context.Context, failure error) error {
	end, err := r.flush(ctx)
	switch {
	case err != nil:
		return err
	case end:
		_, err = r.marked(ctx, Schedule.endsAt)
		return err
	}
	r.reason = Failed
	return failure
}

// inside goes through the turns of a block that were made. Nothing is due in them, but they are kept; the last one is
// left as a turn whose tasks have run, if it is to be finished.
func (r *run[S, B]) inside(batches []B, done []gathered, logs []Logs, finish bool) (err error) {
	from, to := r.seen.history, r.clock.at(r.elapsed)
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
		// Nobody measured the single steps: they share the time of the block.
		part := time.Duration(i+1) * (to.Time - from.Time) / time.Duration(len(done))
		r.elapsed.Time, r.elapsed.Date = from.Time+part, from.Date+Date(part)
		if name := r.watchedName(logs[i]); name != "" && err == nil {
			r.reason = Failed // but the other steps are in the state too, and are counted
			err = r.wrap(fmt.Errorf("%s is logged in some steps only: a BlockStepper must log the same names in each", name))
		}
		r.keepTurn(turn.samples)
		r.noteLatest(r.turn.Logs)
		r.seen.callbacks.Steps, r.seen.callbacks.Samples = turn.elapsed.Steps, turn.elapsed.Samples
		r.seen.tasks, r.changed, r.turn.Logs = turn.elapsed, false, Logs{}
	}
	return err
}

// resize sets how many batches of a task may wait, by the time that the last block took, and by its logs: where one of
// them is watched, each step has to be looked at.
func (r *run[S, B]) resize(took time.Duration, logs []Logs) {
	t := &r.blocks.tasks[r.blocks.task]
	if len(logs) == 0 || t.limit == 1 && r.watchedName(logs[0]) != "" {
		return
	}
	most := int64(t.size)
	if perStep := int64(took) / int64(len(logs)); perStep > 0 {
		most = min(most, int64(blockTime)/perStep)
	}
	t.limit = int(max(min(most, 2*int64(t.limit)), 1))
}

// watchedName is a name that is watched wherever it is logged, and among the logs, "" if none is.
func (r *run[S, B]) watchedName(logs Logs) string {
	for i := range r.beside {
		if b := &r.beside[i]; b.Entry != "" && !b.sparse && b.When.rule != nil && sees(b.Entry, logs) {
			return b.Entry
		}
	}
	return ""
}

// doBlockOfOne makes a single step in the form of a block.
func doBlockOfOne[S, B any](ctx context.Context, s BlockStepper[S, B], turn *Turn[S, B]) error {
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
