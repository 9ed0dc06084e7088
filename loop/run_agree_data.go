package loop

import (
	"context"
	"fmt"
	"time"
)

// receiveAgreed is receive where processes agree.
func (r *run[S, B]) receiveAgreed(batch B, failure error) (more bool) {
	p := r.party
	if p.watch != nil {
		p.watch.At(r.elapsed.Steps+1, "step, tasks and callbacks")
		defer func() { p.watch.At(r.elapsed.Steps+1, "data") }()
	}
	if failure != nil {
		p.failed = r.wrap(failure)
		return false
	}
	r.taken++
	r.turn.Batch = batch
	end, err := false, error(nil)
	if !r.begun {
		p.samples = r.elapsed.Samples + 1
		if r.size != nil {
			p.samples += int64(r.size()) - 1
		}
		if end, err = r.agreeOnBatches(1); !end && err == nil {
			r.made = batch
			end, err = r.begin(p.task)
		}
	}
	if !end && err == nil {
		end, err = r.makeTurn(p.task)
	}
	if p.failed != nil { // the batch is none
		return false
	}
	if end && r.reason != DataEnded { // the turn ended the run, before what else was to end it
		p.halted = false
	}
	if end || err != nil || p.halted {
		r.over, r.failure = true, err
		return false
	}
	return true
}

// agreeOnBatches is called before a batch is used that not all processes are known to have. end says that what was
// taken last is not to be used: the run ends behind the batches that all have. inHand is 1 if the batch of the turn is
// in no block yet.
func (r *run[S, B]) agreeOnBatches(inHand int64) (end bool, err error) {
	if r.taken == r.party.taken {
		return false, nil
	}
	return r.agreeOnData(0, inHand)
}

// agreeOnData agrees on the batches, and on what ends the run at the border before they are used. ended is 1 if the
// data of this process did, 2 if it failed.
func (r *run[S, B]) agreeOnData(ended, inHand int64) (end bool, err error) {
	p := r.party
	p.made = r.from.Steps + r.taken - int64(len(r.blocks.batches)) - inHand
	p.set(pairTaken, r.taken)
	p.set(pairSamples, p.samples)
	p.set(pairEnded, ended)
	p.set(pairCancelled, causeCode(p.ctx))
	p.words[factInterrupt] = 0
	for i := range r.hooks {
		if h := &r.hooks[i]; h.interrupter != nil {
			r.activity = Activity{hook: h} // for a panic in it
			if h.interrupted = h.interrupter.Interrupts(); h.interrupted {
				p.words[factInterrupt] = 1
			}
		}
	}
	if err := r.agree(atBatch, nil); err != nil {
		r.leaveOut(r.taken)
		return false, err
	}
	p.interrupted = p.words[factInterrupt] > 0
	if p.steps > 0 {
		r.limitBlock(p.block, time.Duration(p.words[factTook]), p.steps)
		p.steps, p.took = 0, 0
	}
	if p.stops() { // in a turn of steps alone
		r.leaveOut(r.taken)
		r.reason = Stopped
		return true, nil
	}
	most, least, a, b := p.of(pairTaken)
	end = r.taken > least
	r.leaveOut(r.taken - least - inHand)
	p.taken = least
	if up, low, a, b := p.of(pairSamples); most == least && up != low {
		r.leaveOut(r.taken)
		p.over, r.reason = true, Failed
		return false, r.errorAt("data", fmt.Errorf("the batches of the processes differ: rank %d has counted %d samples and rank %d %d: "+
			"each batch must count the same number of samples in all of them", a, up, b, low))
	}
	if code, all, rank, _ := p.of(pairCancelled); code > 0 {
		return end, r.haltCancelled(code, all, rank)
	}
	latest, first, by, _ := p.of(pairEnded)
	switch {
	case latest == 2:
		return end, r.haltFailed(by)
	case latest == 1 && first == 1 && most == least:
		p.halted, p.halt = true, halt{reason: DataEnded}
	case latest == 0 && most != least: // as where their batches count unequally many samples
		r.leaveOut(r.taken)
		p.over, r.reason = true, Failed
		return false, r.errorAt("data", fmt.Errorf("the batches of the processes differ: rank %d makes a step of batch %d and rank %d only behind batch %d: "+
			"each batch must count the same number of samples in all of them", b, least, a, most))
	case latest == 1:
		p.halted, p.halt = true, halt{reason: Failed, err: r.uneven(most, least, a, b)}
	}
	return end, nil
}

// uneven is the error for data that ends earlier in one process.
func (r *run[S, B]) uneven(most, least int64, a, b int) error {
	if most == least {
		return r.errorAt("data", fmt.Errorf("the data ended after %d batches in some of the processes and not in others: it must have equally many in each", most))
	}
	return r.errorAt("data", fmt.Errorf("the data of rank %d ended after %d batches, rank %d has had %d: it must have equally many in each process", b, least, a, most))
}

func (r *run[S, B]) haltCancelled(code, all int64, rank int) error {
	p := r.party
	p.halted, p.halt = true, halt{reason: Cancelled, cancelled: p.ctx.Err() != nil}
	if all > 0 {
		return nil
	}
	var own error
	if p.halt.cancelled {
		own = context.Cause(p.ctx)
	}
	message, err := r.tell(rank, own)
	if err != nil {
		return r.unlessFailed(nil, err)
	}
	p.halt.err = &RankError{Rank: rank, Message: "cancelled: " + message, cause: causeOf(code), reason: Cancelled}
	return nil
}

func (r *run[S, B]) haltFailed(rank int) error {
	p := r.party
	p.halted, p.halt = true, halt{reason: Failed}
	message, err := r.tell(rank, p.failed)
	if err != nil {
		return r.unlessFailed(nil, err)
	}
	if p.halt.err = p.failed; p.failed == nil {
		p.halt.err = &RankError{Rank: rank, Message: message, reason: Failed}
	}
	return nil
}

// leaveOut leaves the newest n batches of a block out, which make no step.
func (r *run[S, B]) leaveOut(n int64) {
	b := &r.blocks
	if n > 0 && b.pending() {
		keep := max(int64(len(b.batches))-n, 0)
		clear(b.batches[keep:])
		b.batches, b.turns, b.dueAfter = b.batches[:keep], b.turns[:keep], b.dueAfter[:0]
	}
	if !b.pending() && !r.changed { // elapsed is that of the first batch of a block
		r.elapsed = r.lastTurn.tasks
	}
}
