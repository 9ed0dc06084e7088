package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// party is what a run keeps where several processes make it together.
//
// All of them meet at the same places: at the start, where batches that not all are known to have are to become steps,
// behind a turn in which anything but steps ran, and at the end. At each they exchange a few words, and what follows is
// a function of these alone. Whoever fails goes to the end at once; the others learn it at the place that they reach
// next. Between two places nothing asks the clock, so that batches go into the same blocks everywhere.
type party struct {
	Job
	watch Watched // nil: nobody asks what this process is doing
	rank  int64
	words [facts]int64
	ctx   context.Context // of the run; tasks and callbacks have one that does not end
	task  context.Context
	// passed is the time since the start of the run that all have agreed on.
	passed time.Duration
	taken  int64 // the batches that all have
	// samples is what was counted with the newest batch that was taken.
	samples     int64
	asked       bool // something besides steps ran since the last place
	interrupted bool // an Interrupter asked for a call, in one of the processes
	// The newest block: its task, its steps, and how long it took to gather and to make.
	block, steps int
	gathered     time.Time
	took         time.Duration
	made         int64 // the steps before the batches that are not made yet
	failed       error // of the data of this process
	left         bool  // the source was left behind
	halted       bool  // the run ends behind the steps of the batches that all have
	halt         halt
	over         bool // the processes met for the last time before the end: one has failed
	broken       bool // they can meet no more
}

// halt is why a run ends that the processes agreed to end at a border.
type halt struct {
	reason Reason
	err    error
	// cancelled: the context of this process ended; its error is made where the steps are counted.
	cancelled bool
}

// place is where the processes meet.
type place int64

const (
	atBegin place = iota
	atStarted
	atBatch
	behindTurn
	atEnd
	atOver
	atClosed
)

var placeNames = [...]string{"at its start", "before its first turn", "at a batch for the next step", "behind the tasks and callbacks of the step",
	"at what is due at the end", "at the end of its turns", "at the end of its callbacks"}

// placeTopics are what is agreed on there.
var placeTopics = [...]string{"the start of a run", "the first turn of a run", "a batch for the next step", "what follows the tasks and callbacks of a step",
	"what is due at the end of a run", "the end of a run", "the end of a run's callbacks"}

// agree exchanges words; what is for messages.
func (p *party) agree(what string, words []int64) error {
	if p.watch != nil {
		return p.watch.AgreeOn(what, words)
	}
	return p.Agree(words)
}

// The words. Those of a pair are the largest and the smallest of a number, each with a process that has it.
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

const rankBits = 16

func (p *party) set(pair int, v int64) {
	w := v<<rankBits | p.rank
	p.words[factPairs+2*pair], p.words[factPairs+2*pair+1] = w, -w
}

// of is the largest and the smallest number of a pair, and processes that have them.
func (p *party) of(pair int) (most, least int64, highest, lowest int) {
	a, b := p.words[factPairs+2*pair], -p.words[factPairs+2*pair+1]
	const ranks = 1<<rankBits - 1
	return a >> rankBits, b >> rankBits, int(a & ranks), int(b & ranks)
}

// join makes the party of a job, which may be nil.
func (r *run[S, B]) join(ctx context.Context, job Job) (leave context.CancelFunc) {
	if job == nil {
		return func() {}
	}
	ctx, leave = released(ctx)
	r.party = &party{Job: job, rank: int64(job.Rank()), ctx: ctx, task: held(ctx)}
	if watched, ok := job.(Watched); ok {
		r.party.watch = watched
	}
	r.clock = newClock(r.from)
	r.clock.agreed = &r.party.passed
	return leave
}

// agreeOnStart compares how the processes begin, and agrees on their date.
func (r *run[S, B]) agreeOnStart(failure error) error {
	if r.party == nil {
		return failure
	}
	return r.shielded(func() error {
		err := r.agree(atBegin, failure)
		if err == nil {
			r.clock.date = Date(r.party.words[factDate])
		}
		return err
	})
}

// agreeOnStarted is called when the callbacks are started.
func (r *run[S, B]) agreeOnStarted(failure error) error {
	if r.party == nil {
		return failure
	}
	if r.stop == nil && r.endedBefore() {
		r.stop = r.endedBy
	}
	return r.shielded(func() error { return r.agree(atStarted, failure) })
}

// agree is one meeting of the processes. An error of this process is given to the others and comes back; what comes
// back otherwise is the error of another one, or says that they are not at the same place.
func (r *run[S, B]) agree(where place, failure error) error {
	p := r.party
	if errors.As(failure, new(*apartError)) { // of a run within this one
		p.over, p.broken = true, true
		return failure
	}
	w := &p.words
	w[factTime], w[factDate], w[factTook] = int64(time.Since(r.clock.start)), int64(r.clock.date), int64(p.took)
	w[factFailed] = 0
	if failure != nil {
		w[factFailed] = p.rank + 1
	}
	steps := r.elapsed.Steps
	if where == atBatch {
		steps = p.made
	}
	p.set(pairPlace, steps<<3|int64(where))
	p.set(pairSetup, 0)
	if where == atBegin && failure == nil {
		p.set(pairSetup, r.setup())
	}
	stop := int64(0)
	if r.stop != nil {
		stop = 2
		if errors.Is(r.stop, ErrPause) {
			stop = 1
		}
	}
	p.set(pairStop, stop)
	if where != atBatch {
		p.set(pairTaken, 0)
		p.set(pairSamples, 0)
		p.set(pairEnded, 0)
		p.set(pairCancelled, 0)
		w[factInterrupt] = 0
	}
	p.asked = false
	topic := placeTopics[where]
	if failure != nil {
		topic += ", which has failed here: " + point(failure)
	}
	if err := p.agree(topic, w[:]); err != nil {
		p.over, p.broken = true, true
		return r.unlessFailed(failure, r.errorAt("agreement with the other processes", err))
	}
	p.passed = max(p.passed, time.Duration(w[factTime]))
	if w[factFailed] > 0 {
		p.over = true
		rank := int(w[factFailed] - 1)
		message, err := r.tell(rank, failure)
		if err != nil {
			return r.unlessFailed(failure, err)
		}
		return r.unlessFailed(failure, &RankError{Rank: rank, Message: message, reason: Failed})
	}
	if err := r.samePlace(); err != nil {
		p.over = true
		return r.unlessFailed(nil, err)
	}
	return r.agreeOnStop()
}

func (r *run[S, B]) unlessFailed(failure, err error) error {
	if failure != nil {
		return failure
	}
	r.reason = Failed
	return err
}

func (r *run[S, B]) samePlace() error {
	p := r.party
	if most, least, a, b := p.of(pairPlace); most != least {
		return r.apart(most, least, a, b)
	}
	if most, least, a, b := p.of(pairSetup); most != least {
		return r.differing(a, b)
	}
	return nil
}

// apartError is the error of processes that are not at the same place. They meet no more, in the runs around theirs
// either: who is in a run that the others have not begun has another number of runs to leave.
type apartError struct{ error }

func (e *apartError) Unwrap() error { return e.error }

// apart is the error of processes that are not at the same place; ranks a and b are at the places most and least.
func (r *run[S, B]) apart(most, least int64, a, b int) error {
	var labels []string
	for i := range r.tasks {
		labels = append(labels, label(r.tasks[i].when, r.tasks[i].name))
	}
	own := errors.New(strings.Join(labels, ", "))
	first, err := r.tell(a, own)
	if err != nil {
		return err
	}
	second, err := r.tell(b, own)
	if err != nil {
		return err
	}
	r.party.broken = true
	failed := func(format string, args ...any) error {
		return r.errorAt("the processes are not at the same place", &apartError{fmt.Errorf(format, args...)})
	}
	is := func(at int64, tasks string) string {
		return fmt.Sprintf("%s (step %d of the run of %s)", placeNames[at&7], at>>3, tasks)
	}
	if begins := place(most&7) == atBegin; begins != (place(least&7) == atBegin) {
		if !begins {
			least, a, b, first, second = most, b, a, second, first
		}
		return failed("rank %d begins a run of %s, and rank %d does not: it is %s: a run within a task or callback, as an evaluation at the end of an epoch, "+
			"is made by all of them", a, first, b, is(least, second))
	}
	return failed("rank %d is %s, rank %d %s: tasks, callbacks, their schedules and what they log must be the same in all of them",
		a, is(most, first), b, is(least, second))
}

// agreeOnStop takes over the wish to stop of another process.
func (r *run[S, B]) agreeOnStop() error {
	most, least, rank, _ := r.party.of(pairStop)
	if most == 0 || least > 0 {
		return nil
	}
	message, err := r.tell(rank, r.stop)
	if err != nil {
		return r.unlessFailed(nil, err)
	}
	if r.stop == nil {
		cause := ErrStop
		if most == 1 {
			cause = ErrPause
		}
		r.stop = &RankError{Rank: rank, Message: message, cause: cause, reason: Stopped}
	}
	return nil
}

// stops reports whether a process wished to stop, by the last meeting.
func (p *party) stops() bool {
	most, _, _, _ := p.of(pairStop)
	return most > 0
}

const (
	messageWords = 64
	bytesInWord  = 7
)

// tell gives the text of an error of one process to all.
func (r *run[S, B]) tell(from int, err error) (string, error) {
	var words [messageWords]int64
	if int(r.party.rank) == from && err != nil {
		text := point(err)
		for i := range min(len(text), messageWords*bytesInWord) {
			words[i/bytesInWord] |= int64(text[i]) << (8 * (i % bytesInWord))
		}
	}
	if err := r.party.agree("the text of an error", words[:]); err != nil {
		r.party.over, r.party.broken = true, true
		return "", r.errorAt("agreement with the other processes", err)
	}
	var text strings.Builder
	for i := range messageWords * bytesInWord {
		b := byte(words[i/bytesInWord] >> (8 * (i % bytesInWord)))
		if b == 0 {
			break
		}
		text.WriteByte(b)
	}
	return strings.ToValidUTF8(text.String(), ""), nil
}

// agreeOnTurn agrees on the wish to stop behind a turn. Where only steps ran, that waits for the next batch.
func (r *run[S, B]) agreeOnTurn(stop bool) (bool, error) {
	p := r.party
	if !p.asked {
		return false, nil
	}
	if err := r.agree(behindTurn, nil); err != nil {
		return false, err
	}
	return p.stops(), nil
}

// endTurns ends the turns of a run in which processes agree; err is that of this one's turn or source.
func (r *run[S, B]) endTurns(err error) error {
	p := r.party
	if !r.over { // the data ended or failed here, or was left behind
		ended := int64(1)
		switch {
		case err != nil:
			p.failed = err
			fallthrough
		case p.failed != nil:
			ended = 2
		case p.left || p.ctx.Err() != nil:
			ended = 0
		}
		err = r.shielded(func() error { _, err := r.agreeOnData(ended, 0); return err })
	}
	known := error(nil) // the error that all processes have, each in its own words
	switch {
	case err != nil || p.over:
		r.leaveOut(r.taken)
	case p.halted:
		end := false
		if err = r.shielded(func() (err error) { end, err = r.flush(p.task); return err }); err == nil && !end {
			r.reason = p.halt.reason
			if err = p.halt.err; p.halt.cancelled {
				r.at(Activity{name: "cancelled"})
				err = r.wrap(context.Cause(p.ctx))
				if p.left {
					err = fmt.Errorf("%w; %w", err, ErrSourceLeft)
				}
			}
			known = err
		}
	}
	r.turn.Batch = r.made
	if err == nil && r.begun {
		err = r.shielded(func() error {
			if err := r.agree(atEnd, nil); err != nil {
				return err
			}
			if p.stops() { // in the last turn, of steps alone
				r.reason = Stopped
			}
			_, err := r.runAtEdge(p.task, Schedule.endsAt)
			return err
		})
	}
	err = r.await(p.task, err)
	if !p.over {
		err = r.agreeOnError(atOver, known, err)
		p.over = true
	}
	return err
}

// agreeOnError tells the others an error that is not known to them.
func (r *run[S, B]) agreeOnError(where place, known, err error) error {
	failure, reason := err, r.reason
	if err == known {
		failure = nil
	}
	again := r.shielded(func() error { return r.agree(where, failure) })
	switch {
	case err == nil:
		return again
	case again == nil || failure != nil || where == atClosed:
		r.reason = reason
	default: // it is Failed everywhere, or callbacks would end the run in different ways
	}
	return err
}

// agreeOnEnd tells the others what failed when the callbacks of this process ended; before is the error of the turns.
func (r *run[S, B]) agreeOnEnd(before, err error) error {
	if r.party == nil || r.party.broken {
		return err
	}
	return r.agreeOnError(atClosed, before, err)
}

// answerInterrupts is called when the callbacks of a turn have been, those that had asked for it among them.
func (r *run[S, B]) answerInterrupts() {
	if !r.party.interrupted {
		return
	}
	r.party.interrupted, r.party.asked = false, true
	for i := range r.hooks {
		r.hooks[i].interrupted = false
	}
}

// cancelledIn reports whether an error says that the context of some process ended, in a run within this one.
func (p *party) cancelledIn(err error) bool {
	var ranked *RankError
	return errors.As(err, &ranked) && ranked.reason == Cancelled || ended(p.ctx, err)
}
