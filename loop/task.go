package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lazo-ml/lazo/internal/abilities"
)

// Stepper makes one step: from a state and a batch to the next state and the logs. If it returns an error other than
// [ErrStop], the returned state is not used and the old one must still be valid.
//
// A run asks a Stepper for further methods. Steps that may still be running when Step returns, as on a device, have
//
//	Await(ctx context.Context, state S) error
//
// which waits for all steps that were begun on the state and returns the error of one that failed. The loop calls it
// after the last iteration, after a failure too. A step that fails then has been counted. Steps that gather metrics in
// a state that changes in place have
//
//	BeginEvaluation(ctx context.Context, state S) (end func(context.Context) error, err error)
//
// which is called before the first batch of an [Evaluation]: the metrics of this step are empty from then on. end is
// called after the last batch, however the evaluation ended, and puts back what had been gathered before.
//
// Steps that may train nothing have
//
//	Measures() bool
//
// A run whose steps all report true reads all examples of its data, as an [Evaluation] does: the batches of a set then
// include the last, smaller one of an epoch.
//
// A batch with the method Samples() int says how many examples it holds; any other counts as one. One with the method
// InEpoch() (epoch int64, last, known bool) says which epoch it belongs to, and whether it is the last one there if it
// knows; the epoch of any other ends with its iterator.
//
// # Blocks
//
// Steps that are faster several at once, as small ones on a device, have
//
//	BlockSize() int
//	StepBlock(ctx context.Context, state S, batches []B) (S, []Logs, error)
//
// The loop then gives them several batches, never across a point where another task, a callback or the end of the run
// is due. The run is the same, except that schedules of time are looked at between blocks. A block ends with the first
// batch that comes 50 ms after its first one, when its steps are expected to take 50 ms, or when the data reads the
// state (see [State]). [SingleSteps] turns blocks off.
//
// BlockSize is the largest number of steps at once. It is called when a run starts. Below 2 the loop calls Step;
// otherwise it calls StepBlock only, for a single batch too, so that a step computes the same in blocks of any length.
// StepBlock makes the steps of the batches in their order and returns the logs of each, which must have the same names
// in each step. With an error, ErrStop included, it returns the logs of the steps that were made before it and the
// state after them. A panic loses all steps of the block. If StepBlock ends early because the context is cancelled,
// batches that were taken from the data are not in the state ([Report].Ahead).
type Stepper[S, B any] interface {
	Step(ctx context.Context, state S, batch B) (S, Logs, error)
}

// blockStepper is a [Stepper] that can make several steps at once.
type blockStepper[S, B any] interface {
	Stepper[S, B]
	BlockSize() int
	StepBlock(ctx context.Context, state S, batches []B) (S, []Logs, error)
}

// StepFunc makes a [Stepper] of a function.
func StepFunc[S, B any](f func(ctx context.Context, state S, batch B) (S, Logs, error)) Stepper[S, B] {
	if f == nil {
		return nil
	}
	return stepFunc[S, B](f)
}

type stepFunc[S, B any] func(ctx context.Context, state S, batch B) (S, Logs, error)

func (f stepFunc[S, B]) Step(ctx context.Context, state S, batch B) (S, Logs, error) {
	return f(ctx, state, batch)
}

// Turn is what a task is given: the batch, and the state and logs after the tasks before it.
type Turn[S, B any] struct {
	State   S
	Batch   B
	Elapsed Elapsed
	Logs    Logs
}

// Task changes the state or logs something, on a schedule.
type Task[S, B any] struct {
	name string
	when Schedule
	do   func(ctx context.Context, turn *Turn[S, B]) error
	// start, if not nil, makes do for each run.
	start func() func(ctx context.Context, turn *Turn[S, B]) error
	// ignoresTime: the time of the turn is not passed to the user's function.
	ignoresTime bool
	steps       bool                   // it is a Stepper
	measures    bool                   // it is a Stepper that trains nothing
	evaluates   bool                   // it is an Evaluation
	block       blockStepper[S, B]     // nil if it makes one step at a time
	await       abilities.Awaiter[S]   // nil if its steps are over when they return
	evaluation  abilities.Evaluator[S] // nil if its steps gather nothing
	err         error
}

// On makes a task of a [Stepper]. An [Evaluation] has a method On of its own. If it is a
// [fmt.Stringer], its text is the task's name.
func On[S, B any](when Schedule, stepper Stepper[S, B]) Task[S, B] {
	if stepper == nil {
		return Task[S, B]{when: when, err: errNoFunction}
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
	task.err = misdeclared(reflect.TypeOf(stepper), "the step",
		reflect.TypeFor[blockStepper[S, B]](), reflect.TypeFor[abilities.Awaiter[S]](), reflect.TypeFor[abilities.Evaluator[S]](), reflect.TypeFor[abilities.Measurer]())
	task.block, _ = stepper.(blockStepper[S, B])
	task.await, _ = stepper.(abilities.Awaiter[S])
	task.evaluation, _ = stepper.(abilities.Evaluator[S])
	if m, ok := stepper.(abilities.Measurer); ok {
		task.measures = m.Measures()
	}
	if s, ok := stepper.(fmt.Stringer); ok {
		task.name = fmt.Sprint(s) // not s.String(): fmt makes a panic of it a text
	}
	return task
}

// OnTurn makes a task of a function that may read and change all of the turn.
func OnTurn[S, B any](when Schedule, do func(ctx context.Context, turn *Turn[S, B]) error) Task[S, B] {
	if do == nil {
		return Task[S, B]{when: when, err: errNoFunction}
	}
	return Task[S, B]{when: when, do: do}
}

// OnTurnOf is [OnTurn] for a task that keeps something between the turns of a run: start makes the function for each
// run.
func OnTurnOf[S, B any](when Schedule, start func() func(ctx context.Context, turn *Turn[S, B]) error) Task[S, B] {
	if start == nil {
		return Task[S, B]{when: when, err: errNoFunction}
	}
	return Task[S, B]{when: when, start: start}
}

// Named sets the task's name in errors and in the plan.
func (t Task[S, B]) Named(name string) Task[S, B] {
	t.name = name
	return t
}

// WithErr gives the task a mistake, which a run reports before its first turn. A nil error changes nothing.
func (t Task[S, B]) WithErr(err error) Task[S, B] {
	t.err = errors.Join(t.err, err)
	return t
}

// String is the schedule, and the name if there is one, as in errors.
func (t *Task[S, B]) String() string { return label(t.when, t.name) }

func (t *Task[S, B]) activity() activity { return activity{of: t, name: t.name, task: true} }

// label is a schedule, and a name if there is one.
func label(when Schedule, name string) string {
	if name == "" {
		return when.String()
	}
	return when.String() + ": " + name
}
