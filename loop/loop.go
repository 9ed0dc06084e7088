package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Loop is a list of tasks, for any number of runs.
type Loop[S, B any] struct{ tasks []Task[S, B] }

// New returns a loop that runs the tasks in this order.
func New[S, B any](tasks ...Task[S, B]) Loop[S, B] { return Loop[S, B]{slices.Clone(tasks)} }

// Result is a run's outcome. State is the last good state, also with an error.
type Result[S any] struct {
	State   S
	History *History
	// Elapsed counts the iterations in State. A failed one counts if a task had changed the state.
	Elapsed Elapsed
	Reason  Reason
	// Stop is set if Reason is [Stopped]: it wraps [ErrStop] and names the task or callback.
	Stop error
}

// Run makes an iteration for each batch until the data ends, [Until] is reached, a task or callback returns
// [ErrStop], the context ends, or an error occurs. Without Until it makes one pass over the data. Iterations run on a
// goroutine of the run.
//
// If the context ends, the run ends after the iteration with an error that wraps its cause. It does not interrupt
// compilations, steps, or tasks and callbacks that ignore the context. It waits half a second for a batch, which
// still has its iteration, then abandons the source ([ErrSourceLeft]).
//
// Errors name the step and the task: "loop: step 300: every 100 steps: checkpoint: …". A panic becomes a
// [*PanicError].
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

func (r *run[S, B]) join(ctx context.Context) (leave context.CancelFunc) {
	if r.job == nil {
		r.ctx, r.work, r.agreement, r.shared = ctx, ctx, alone[S, B]{r}, math.MaxInt64
		return func() {}
	}
	r.ctx, leave = released(ctx)
	r.work = held(r.ctx)
	r.clock = newClock(r.from)
	p := &ranks[S, B]{run: r, Job: r.job, rank: int64(r.job.Rank())}
	p.watch, _ = r.job.(abilities.Watched)
	r.agreement, r.clock.agreed = p, &p.passed
	return leave
}
