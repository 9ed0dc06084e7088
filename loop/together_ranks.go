package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/agreed"
)

// ranks meet at four places (docs/decisions/0011), and decide only by the words exchanged there.
type ranks[S, B any] struct {
	*run[S, B]
	Job
	watch        abilities.Watched
	rank         int64
	words        [facts]int64
	passed       time.Duration
	block, steps int
	took         time.Duration
	made         int64
	halt         halt
	met          bool // a process failed: no meeting before the end
	broken       bool
}

type halt struct {
	reason    Reason
	err       error
	cancelled bool
}

var placeNames = [...]string{"at its start", "before its first turn", "at a batch for the next step", "after the tasks and callbacks of the step",
	"at the tasks and callbacks of the end", "at the end of its turns", "at the end of its callbacks"}

var placeTopics = [...]string{"the start of a run", "the first turn of a run", "a batch for the next step", "the work after the tasks and callbacks of a step",
	"the tasks and callbacks at the end of a run", "the end of a run", "the end of a run's callbacks"}

// The words exchanged. A pair has the largest and smallest of a number, each with its rank.
const (
	factTime = iota
	factDate
	factFailed // 1 plus the rank
	factInterrupt
	factTook
	factPairs
	facts = factPairs + 2*pairs
)

const (
	pairPlace = iota
	pairSetup
	pairTaken
	pairSamples
	pairEnded // 1: the data ended, 2: it failed
	pairStop  // 1: ErrPause, 2: another ErrStop
	pairCancelled
	pairs
)

func (p *ranks[S, B]) set(pair int, v int64) { agreed.SetPair(p.words[factPairs+2*pair:], v, p.rank) }

func (p *ranks[S, B]) of(pair int) (most, least int64, highest, lowest int) {
	return agreed.Pair(p.words[factPairs+2*pair:])
}

func (p *ranks[S, B]) exchange(topic string, words []int64) (err error) {
	if p.watch != nil {
		err = p.watch.AgreeOn(topic, words)
	} else {
		err = p.Agree(words)
	}
	if err != nil {
		p.met, p.broken = true, true
		return p.errorAt("agreement with the other processes", err)
	}
	return nil
}

// One meeting: the error is any process's failure, or different places.
func (p *ranks[S, B]) agree(where place, failure error) error {
	if errors.As(failure, new(*apartError)) {
		p.met, p.broken = true, true
		return failure
	}
	topic, steps := placeTopics[where], p.elapsed.Steps
	if where == atBatch {
		steps = p.made
	} else {
		p.say(0, 0, 0, 0)
	}
	w := &p.words
	w[factTime], w[factDate], w[factTook], w[factFailed] = int64(time.Since(p.clock.start)), int64(p.clock.date), int64(p.took), 0
	p.set(pairPlace, steps<<3|int64(where))
	p.set(pairSetup, 0)
	p.set(pairStop, stopCode(p.stop))
	switch {
	case failure != nil:
		w[factFailed] = p.rank + 1
		topic += ", which has failed here: " + point(failure)
	case where == atBegin:
		p.set(pairSetup, agreed.Sum(p.ofAll()))
	}
	p.acted = false
	if err := p.exchange(topic, w[:]); err != nil {
		return p.unlessFailed(failure, err)
	}
	p.passed = max(p.passed, time.Duration(w[factTime]))
	if w[factFailed] > 0 {
		p.met = true
		rank := int(w[factFailed] - 1)
		message, err := p.tell(rank, failure)
		if err == nil {
			err = &rankError{Rank: rank, Message: message, reason: Failed}
		}
		return p.unlessFailed(failure, err)
	}
	if err := p.samePlace(); err != nil {
		p.met = true
		return p.unlessFailed(nil, err)
	}
	if where == atBegin {
		p.clock.date = Date(w[factDate])
	}
	return p.agreeOnStop()
}

func (p *ranks[S, B]) say(taken, samples, ended, cancelled int64) {
	p.set(pairTaken, taken)
	p.set(pairSamples, samples)
	p.set(pairEnded, ended)
	p.set(pairCancelled, cancelled)
	p.words[factInterrupt] = 0
}

func stopCode(stop error) int64 {
	switch {
	case stop == nil:
		return 0
	case errors.Is(stop, ErrPause):
		return 1
	}
	return 2
}

func (p *ranks[S, B]) unlessFailed(failure, err error) error {
	if failure != nil {
		return failure
	}
	p.reason = Failed
	return err
}

func (p *ranks[S, B]) samePlace() error {
	if most, least, a, b := p.of(pairPlace); most != least {
		return p.apart(most, least, a, b)
	}
	if most, least, a, b := p.of(pairSetup); most != least {
		return p.differing(a, b)
	}
	return nil
}

// apartError: processes at different places do not meet again, nor in outer runs.
type apartError struct{ error }

func (e *apartError) Unwrap() error { return e.error }

func (p *ranks[S, B]) apart(most, least int64, a, b int) error {
	var labels []string
	for i := range p.tasks {
		labels = append(labels, p.tasks[i].String())
	}
	first, second, err := p.tellBoth(a, b, errors.New(strings.Join(labels, ", ")))
	if err != nil {
		return err
	}
	p.broken = true
	failed := func(format string, args ...any) error {
		return p.errorAt("the processes are not at the same place", &apartError{fmt.Errorf(format, args...)})
	}
	is := func(at int64, tasks string) string {
		return fmt.Sprintf("%s (step %d of the run of %s)", placeNames[at&7], at>>3, tasks)
	}
	if begins := place(most&7) == atBegin; begins != (place(least&7) == atBegin) {
		if !begins {
			least, a, b, first, second = most, b, a, second, first
		}
		return failed("rank %d begins a run of %s, and rank %d does not: rank %[3]d is %[4]s: a run within a task or callback, as an evaluation at the end of an epoch, "+
			"must be made by all ranks", a, first, b, is(least, second))
	}
	return failed("rank %d is %s, rank %d %s: tasks, callbacks, their schedules and their logged names must be the same in all ranks",
		a, is(most, first), b, is(least, second))
}

func (p *ranks[S, B]) agreeOnStop() error {
	most, least, rank, _ := p.of(pairStop)
	if most == 0 || least > 0 {
		return nil
	}
	message, err := p.tell(rank, p.stop)
	if err != nil {
		return p.unlessFailed(nil, err)
	}
	if p.stop == nil {
		cause := ErrStop
		if most == 1 {
			cause = ErrPause
		}
		p.stop = &rankError{Rank: rank, Message: message, cause: cause, reason: Stopped}
	}
	return nil
}

func (p *ranks[S, B]) stops() bool {
	most, _, _, _ := p.of(pairStop)
	return most > 0
}

func (p *ranks[S, B]) tell(from int, err error) (string, error) {
	var text agreed.Text
	if int(p.rank) == from && err != nil {
		text.Set(point(err))
	}
	if err := p.exchange("the text of an error", text[:]); err != nil {
		return "", err
	}
	return text.String(), nil
}

func (p *ranks[S, B]) tellBoth(a, b int, own error) (first, second string, err error) {
	if first, err = p.tell(a, own); err == nil {
		second, err = p.tell(b, own)
	}
	return first, second, err
}

// border waits for the next batch if only steps ran.
func (p *ranks[S, B]) border(bool) (stop bool, err error) {
	if !p.acted && !p.halted {
		return false, nil
	}
	if err := p.agree(afterIteration, nil); err != nil {
		return false, err
	}
	return p.stops(), nil
}

func (p *ranks[S, B]) meet(where place, known, err error) error {
	if p.broken {
		return err
	}
	failure, reason := err, p.reason
	if err == known {
		failure = nil
	}
	again := p.shielded(func() error { return p.agree(where, failure) })
	switch {
	case err == nil:
		return again
	case again == nil || failure != nil || where == atClosed:
		p.reason = reason
	default: // so that callbacks end alike
	}
	return err
}

func (p *ranks[S, B]) interrupts(h *hook) bool { return p.interrupted && h.interrupted }

// The longest time of all processes decides.
func (p *ranks[S, B]) timed(steps int, _ time.Duration) {
	p.block, p.steps, p.took = p.blocks.current, steps, time.Since(p.blocks.since)
}

func cancelledElsewhere(err error) bool {
	var ranked *rankError
	return errors.As(err, &ranked) && ranked.reason == Cancelled
}

func (p *ranks[S, B]) end(left bool, err error) error {
	r := p.run
	if !r.over {
		ended := int64(1)
		switch {
		case err != nil:
			ended, r.refused = 2, err
		case r.refused != nil:
			ended = 2
		case left || r.ctx.Err() != nil:
			ended = 0
		}
		_, err = r.shieldedEnd(func() (bool, error) { return p.agreeOnData(ended, 0, p.samplesTaken()) })
	}
	known := error(nil)
	switch {
	case err != nil || p.met:
		r.leaveOut(r.taken)
	case r.halted:
		known, err = p.endHalted(left)
	}
	if err == nil && r.begun {
		_, err = r.shieldedEnd(func() (bool, error) {
			if err := p.agree(atEnd, nil); err != nil {
				return false, err
			}
			if p.stops() {
				r.reason = Stopped
			}
			if most, _, _, _ := p.of(pairStop); r.reason == Stopped && most == 1 { // all pause
				return false, nil
			}
			return r.atEdge(false)
		})
	}
	err = r.await(err)
	if !p.met {
		err = p.meet(atOver, known, err)
		p.met = true
	}
	return err
}

func (p *ranks[S, B]) endHalted(left bool) (known, err error) {
	if end, err := p.shieldedEnd(p.flush); end || err != nil {
		return nil, err
	}
	p.reason = p.halt.reason
	if known = p.halt.err; p.halt.cancelled {
		p.at(activity{name: "cancelled"})
		known = p.wrap(context.Cause(p.ctx))
		if left {
			known = fmt.Errorf("%w; %w", known, ErrSourceLeft)
		}
	}
	return known, known
}
