package loop

import (
	"context"
	"fmt"
	"slices"
)

// Loop is an ordered list of tasks. It is a value and keeps nothing of a run, so it can run any number of times.
type Loop[S, B any] struct{ tasks []Task[S, B] }

// New makes a loop of tasks; in each turn they run in this order.
func New[S, B any](tasks ...Task[S, B]) Loop[S, B] { return Loop[S, B]{slices.Clone(tasks)} }

// Result is how a run ended. It is valid also beside an error: State is then the last good one.
type Result[S any] struct {
	State   S
	History *History
	// Elapsed counts the turns that State has in it. One that failed half way counts if a task of it had changed the state
	// already, as where an evaluation behind a training step was cancelled; else it does not.
	Elapsed Elapsed
	Reason  Reason
	// Stop is what asked for the end where the Reason is [Stopped]: an error that wraps [ErrStop] and names who it was.
	Stop error
}

// Run turns the loop over the data until it ends, [Until] is reached, a task or callback asks to stop, the context is
// cancelled, or something fails.
//
// A cancelled context, or one whose deadline is over, ends the run at the next border between turns; the error then wraps the
// cause of the context. A run that waits for its data ends within a second whatever the data does: a batch that comes in the
// next half second has its turn still, so that the data stands where the state does; if none comes the run ends without, and
// the goroutine that waits in the source is left behind until that comes back ([ErrSourceLeft]). No function of Go can be ended
// from outside, so a task, a callback or a step that blocks holds the run: each is given the context to end with. A step that is
// begun when the context has ended already is made nevertheless, and is given one that has not. A compilation cannot be broken
// off either: the run ends behind it.
//
// Errors name the step and the task: "loop: step 300: every 100 steps: checkpoint: …".
// A panic in a task, a callback or the data becomes a [*PanicError], and so does a [runtime.Goexit]; for the sake of
// that the turns run on a goroutine of their own.
func (l Loop[S, B]) Run(ctx context.Context, state S, data Data[B], options ...Option) (Result[S], error) {
	r := &run[S, B]{settings: newSettings(options), tasks: l.tasks, turn: Turn[S, B]{State: state}}
	r.elapsed, r.history = r.from, r.resumed
	if r.history == nil {
		r.history = &History{}
	}
	if err := r.check(data == nil); err != nil {
		return Result[S]{State: state, History: r.history, Elapsed: r.elapsed, Reason: Failed}, fmt.Errorf("loop: %w", err)
	}
	err := r.start()
	if err == nil {
		err = r.turns(ctx, data)
	}
	err = r.finish(ctx, err)
	result := Result[S]{State: r.turn.State, History: r.history, Elapsed: r.elapsed, Reason: r.reason}
	if r.reason == Stopped {
		result.Stop = r.stop
	}
	return result, err
}
