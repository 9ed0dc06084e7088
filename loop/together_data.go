package loop

import (
	"context"
	"fmt"
	"time"
)

func (p *ranks[S, B]) refuse(err error) (bool, error) {
	p.refused = err
	p.taken = p.last.tasks.Steps - p.from.Steps + int64(len(p.blocks.batches))
	return false, nil
}

func (p *ranks[S, B]) next(end bool, failure error) (bool, error) {
	if p.watch != nil {
		p.watch.At(p.elapsed.Steps+1, "data")
	}
	if failure != nil {
		p.refused = p.wrap(failure)
	}
	if p.refused != nil {
		return false, nil
	}
	if end && p.reason != DataEnded { // the iteration ended the run first
		p.halted = false
	}
	return end || p.halted, nil
}

func (p *ranks[S, B]) use(waiting, samples int64) (end bool, err error) {
	if p.watch != nil {
		p.watch.At(p.elapsed.Steps+1, "step, tasks and callbacks")
	}
	if !p.begun {
		if samples = p.elapsed.Samples + 1; p.size != nil {
			samples += int64(p.size()) - 1
		}
	}
	return p.agreeOnData(0, waiting, samples)
}

func (p *ranks[S, B]) samplesTaken() int64 {
	if n := len(p.blocks.elapsed); n > 0 {
		return p.blocks.elapsed[n-1].Samples
	}
	return p.last.tasks.Samples
}

// agreeOnData agrees on the batches, and on reasons to end the run before them. ended: this process's data ended (1)
// or failed (2). end: the run ends after all's batches.
func (p *ranks[S, B]) agreeOnData(ended, waiting, samples int64) (end bool, err error) {
	p.made = p.from.Steps + p.taken - int64(len(p.blocks.batches)) - waiting
	p.say(p.taken, samples, ended, causeCode(p.ctx))
	p.askInterrupters()
	if err := p.agree(atBatch, nil); err != nil {
		p.leaveOut(p.taken)
		return false, err
	}
	p.interrupted = p.words[factInterrupt] > 0
	if p.steps > 0 {
		p.limitBlock(p.block, p.steps, time.Duration(p.words[factTook]))
		p.steps, p.took = 0, 0
	}
	if p.stops() {
		p.leaveOut(p.taken)
		p.reason = Stopped
		return true, nil
	}
	most, least, a, b := p.of(pairTaken)
	end = p.taken > least
	p.leaveOut(p.taken - least - waiting)
	p.shared = least
	if up, low, a, b := p.of(pairSamples); most == least && up != low {
		return false, p.differ("rank %d has counted %d samples and rank %d %d", a, up, b, low)
	}
	if code, all, rank, _ := p.of(pairCancelled); code > 0 {
		return end, p.haltCancelled(code, all, rank)
	}
	latest, first, by, _ := p.of(pairEnded)
	switch {
	case latest == 2:
		return end, p.haltFailed(by)
	case latest == 1 && first == 1 && most == least:
		p.halted, p.halt = true, halt{reason: DataEnded}
	case latest == 1:
		p.halted, p.halt = true, halt{reason: Failed, err: p.uneven(most, least, a, b)}
	case most != least:
		return false, p.differ("rank %d makes a step after batch %d and rank %d only after batch %d", b, least, a, most)
	}
	return end, nil
}

func (p *ranks[S, B]) askInterrupters() {
	for i := range p.hooks {
		if h := &p.hooks[i]; h.interrupter != nil {
			p.activity = ofHook(h)
			if h.interrupted = h.interrupter.Interrupts(); h.interrupted {
				p.words[factInterrupt] = 1
			}
		}
	}
}

// The processes do not meet again.
func (p *ranks[S, B]) differ(format string, args ...any) error {
	p.leaveOut(p.taken)
	p.met, p.reason = true, Failed
	return p.errorAt("data", fmt.Errorf("the batches of the processes differ: "+format+": each batch must count the same number of samples in all of them", args...))
}

func (p *ranks[S, B]) uneven(most, least int64, a, b int) error {
	if most == least {
		return p.errorAt("data", fmt.Errorf("the data ended after %d batches in some of the processes and not in others: it must have the same number of batches in each", most))
	}
	return p.errorAt("data", fmt.Errorf("the data of rank %d ended after %d batches, rank %d has had %d: it must have the same number of batches in each process", b, least, a, most))
}

func (p *ranks[S, B]) haltCancelled(code, all int64, rank int) error {
	p.halted, p.halt = true, halt{reason: Cancelled, cancelled: p.ctx.Err() != nil}
	if all > 0 {
		return nil
	}
	var own error
	if p.halt.cancelled {
		own = context.Cause(p.ctx)
	}
	message, err := p.tell(rank, own)
	if err != nil {
		return p.unlessFailed(nil, err)
	}
	p.halt.err = &rankError{Rank: rank, Message: "cancelled: " + message, cause: causeOf(code), reason: Cancelled}
	return nil
}

func (p *ranks[S, B]) haltFailed(rank int) error {
	p.halted, p.halt = true, halt{reason: Failed}
	message, err := p.tell(rank, p.refused)
	if err != nil {
		return p.unlessFailed(nil, err)
	}
	if p.halt.err = p.refused; p.refused == nil {
		p.halt.err = &rankError{Rank: rank, Message: message, reason: Failed}
	}
	return nil
}
