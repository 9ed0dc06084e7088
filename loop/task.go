package loop

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Data is a sequence of batches. A batch comes with a nil error; an error ends the run. A batch must stay as it is until
// its step is over; a [BlockStepper] holds several at once. To prefetch, repeat or cut any Data short, see package data.
//
// Data is called, and ends, on a goroutine of the run. Data that waits for something should end with the run's context: it is left
// behind if it does not come back when that ends.
type Data[B any] = iter.Seq2[B, error]

// Sized is a batch that knows how many examples it holds: a value, a pointer, or what stands in an interface. A batch that does
// not counts as one example.
type Sized interface{ Samples() int }

// Stepper makes one step: from a state and a batch to the next state and what is to be logged. On an error the
// returned state is not used: the old one must still be good.
type Stepper[S, B any] interface {
	Step(ctx context.Context, state S, batch B) (S, Logs, error)
}

// StepFunc is a function as a [Stepper].
type StepFunc[S, B any] func(ctx context.Context, state S, batch B) (S, Logs, error)

// Step calls the function.
func (f StepFunc[S, B]) Step(ctx context.Context, state S, batch B) (S, Logs, error) {
	return f(ctx, state, batch)
}

// BlockStepper is a [Stepper] that can make several steps at once, which is faster where a step is small. The loop then
// gives it several batches, never across a point where another task, a callback or the end of the run is due. The run is the
// same, except that schedules of time are looked at between blocks. A block is made when 50 ms have passed since its first batch
// came, or when its steps are expected to take 50 ms.
type BlockStepper[S, B any] interface {
	Stepper[S, B]
	// BlockSize is how many steps there may be at once. It is asked when a run starts; below 2 the loop calls Step. Else it
	// calls StepBlock alone, for a single batch too, so that a step computes the same in whatever company.
	BlockSize() int
	// StepBlock makes the steps of the batches in their order, with the logs of each, which must have the same names in each
	// step. With an error, also [ErrStop], it gives the logs of the steps that were made before it, and the state after them. A
	// panic loses all steps of the block. A context that is cancelled takes effect after the block, unless StepBlock looks at it;
	// then batches that were taken are not trained, and a place that the data counts is not that of the state ([Report].Ahead).
	StepBlock(ctx context.Context, state S, batches []B) (S, []Logs, error)
}

// Awaiter is a [Stepper] whose steps may go on when its method has returned, on a device, say, while the loop gets the next
// batch. The logs of such a step are values that wait. Await waits for all steps that were begun on the state, and gives
// the error of one that failed; the loop calls it when the last turn is made, also after a failure. A failure that comes
// so late ends the run, but its step has been counted.
type Awaiter[S any] interface {
	Await(ctx context.Context, state S) error
}

// Turn is what a task works on: the state and the logs as the tasks before it left them.
type Turn[S, B any] struct {
	State   S
	Batch   B
	Elapsed Elapsed
	Logs    Logs
}

// Task is something that changes the state, on a schedule.
type Task[S, B any] struct {
	name string
	when Schedule
	do   func(ctx context.Context, turn *Turn[S, B]) error
	// start makes do for each run, nil if it keeps nothing between turns.
	start func() func(ctx context.Context, turn *Turn[S, B]) error
	// ignoresTime tells that it does not look at the time of its turn.
	ignoresTime bool
	steps       bool               // it is a Stepper
	block       BlockStepper[S, B] // nil if it makes one step at a time
	await       Awaiter[S]         // nil if its steps are over when they return
	err         error
}

// On makes a task of a [Stepper], which may be a [BlockStepper].
func On[S, B any](when Schedule, stepper Stepper[S, B]) Task[S, B] {
	if stepper == nil {
		return Task[S, B]{when: when, err: ErrNoFunction}
	}
	task := Task[S, B]{when: when, ignoresTime: true, steps: true, do: func(ctx context.Context, turn *Turn[S, B]) error {
		state, logs, err := stepper.Step(ctx, turn.State, turn.Batch)
		if err != nil && !isStop(err) {
			return err
		}
		turn.State = state
		turn.Logs.Merge(logs)
		return err
	}}
	task.block, _ = stepper.(BlockStepper[S, B])
	task.await, _ = stepper.(Awaiter[S])
	if s, ok := stepper.(fmt.Stringer); ok {
		task.name = fmt.Sprint(s) // not s.String(): fmt makes a panic of it a text
	}
	return task
}

// OnFunc makes a task of a step function.
func OnFunc[S, B any](when Schedule, step func(ctx context.Context, state S, batch B) (S, Logs, error)) Task[S, B] {
	if step == nil {
		return Task[S, B]{when: when, err: ErrNoFunction}
	}
	return On[S, B](when, StepFunc[S, B](step))
}

// OnTurn is the primitive below [On]: the function may look at and change all of the turn.
func OnTurn[S, B any](when Schedule, do func(ctx context.Context, turn *Turn[S, B]) error) Task[S, B] {
	if do == nil {
		return Task[S, B]{when: when, err: ErrNoFunction}
	}
	return Task[S, B]{when: when, do: do}
}

// OnTurnOf is [OnTurn] for what keeps something between the turns of a run: start makes the function anew for each run.
func OnTurnOf[S, B any](when Schedule, start func() func(ctx context.Context, turn *Turn[S, B]) error) Task[S, B] {
	if start == nil {
		return Task[S, B]{when: when, err: ErrNoFunction}
	}
	return Task[S, B]{when: when, start: start}
}

// Named gives the task the name that stands in errors and in the plan.
func (t Task[S, B]) Named(name string) Task[S, B] {
	t.name = name
	return t
}

// WithErr gives the task a mistake, which a run reports before its first turn. A nil error changes nothing.
func (t Task[S, B]) WithErr(err error) Task[S, B] {
	t.err = errors.Join(t.err, err)
	return t
}

func (t *Task[S, B]) label() string { return label(t.when, t.name) }

// label is how errors call something: its schedule, and its name if it has one.
func label(when Schedule, name string) string {
	if name == "" {
		return when.String()
	}
	return when.String() + ": " + name
}
