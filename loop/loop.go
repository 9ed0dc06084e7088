package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Loop is an ordered list of tasks. It is a value and keeps nothing of a run, so it can run any number of times.
type Loop[S, B any] struct{ tasks []Task[S, B] }

// New makes a loop of tasks; in each turn they run in this order.
func New[S, B any](tasks ...Task[S, B]) Loop[S, B] { return Loop[S, B]{slices.Clone(tasks)} }

// Result is how a run ended. It is valid beside an error too: State is then the last good one.
type Result[S any] struct {
	State   S
	History *History
	// Elapsed counts the turns that are in State. A turn that failed half way counts if one of its tasks had changed
	// the state already, as when an evaluation after a training step was cancelled.
	Elapsed Elapsed
	Reason  Reason
	// Stop is set if the Reason is [Stopped]: an error that wraps [ErrStop] and names the task or callback that
	// returned it.
	Stop error
}

// Run makes a turn for each batch of the data until the data ends, [Until] is reached, a task or callback returns
// [ErrStop], the context is cancelled, or something fails. Without an Until it makes one pass over the data.
//
// A cancelled context, or one past its deadline, ends the run at the next border between turns; the error wraps the
// cause of the context. A run that waits for its data ends within a second, whatever the data does: a batch that comes
// in the next half second still has its turn, so that the data's position stays that of the state. If none comes, the
// run ends without it and the goroutine that waits in the source is left behind until the source returns
// ([ErrSourceLeft]). A task, a callback or a step that blocks holds the run: each is given the context to end with. A
// step that begins after the context has ended is made nevertheless, with a context that has not. A compilation cannot
// be interrupted: the run ends after it.
//
// Errors name the step and the task: "loop: step 300: every 100 steps: checkpoint: …". A panic in a task, a callback or
// the data becomes a [*PanicError], and so does a [runtime.Goexit]; the turns run on their own goroutine for that
// reason.
func (l Loop[S, B]) Run(ctx context.Context, state S, data Source[B], options ...Option) (result Result[S], err error) {
	r := &run[S, B]{tasks: l.tasks, turn: Turn[S, B]{State: state}}
	job, err := jobOf(state, &r.turn.State)
	if ctx == nil {
		ctx, err = context.Background(), errors.Join(err, shield.ErrNoContext)
	}
	ctx, end, busy := claim(ctx, job)
	if busy != nil {
		return Result[S]{State: state, History: &History{}, Elapsed: newSettings(options, job).from, Reason: Failed}, busy
	}
	defer end()
	made, failed := prepared(ctx, options, job, &r.turn.State)
	defer func() {
		if closing := closeAll(made); closing != nil {
			result.Reason, err = Failed, errors.Join(err, closing)
		}
	}()
	r.settings = newSettings(options, job, made...)
	if measures(l.tasks) {
		data = whole(data)
	}
	_, r.plain = data.(Data[B])
	leave := r.join(ctx)
	defer leave()
	stopReading, unread := r.beginReading()
	defer stopReading()
	r.elapsed, r.history = r.from, r.resumed
	if r.history == nil {
		r.history = &History{}
	}
	if err = errors.Join(err, failed, unread, r.check(isNil(data))); err != nil {
		err = fmt.Errorf("loop: %w", err)
	}
	if err = r.agreement.meet(atBegin, nil, err); err != nil {
		return Result[S]{State: r.turn.State, History: r.history, Elapsed: r.elapsed, Reason: Failed}, err
	}
	r.logUnreached(ctx, job)
	if err = r.agreement.meet(atStarted, nil, r.start()); err == nil {
		err = r.iterations(data)
	}
	err = r.agreement.meet(atClosed, err, r.endHooks(err))
	result = Result[S]{State: r.turn.State, History: r.history, Elapsed: r.elapsed, Reason: r.reason}
	if r.reason == Stopped {
		result.Stop = r.stop
	}
	return result, err
}
