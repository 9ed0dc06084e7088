package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Stepper makes one step: from a state and a batch to the next state and the logs. After an error other than
// [ErrStop], the run keeps the old state, which must still be valid.
//
// A run asks a Stepper for further methods. Steps that may still run after Step returns, as on a device, have
//
//	Await(ctx context.Context, state S) error
//
// which waits for all started steps and returns the error of a failed one, which still counts as a step. The loop
// calls it after the last iteration, also after a failure. Steps with metrics in a state that changes in place have
//
//	BeginEvaluation(ctx context.Context, state S) (end func(context.Context) error, err error)
//
// which resets the metrics before an [Evaluation]; end restores them after it, also after an error. Steps that may
// train nothing have
//
//	Measures() bool
//
// If all return true, the run also reads the last, smaller batch of a set.
//
// A batch's method Samples() int returns its number of examples, without it 1. InEpoch() (epoch int64, last, known
// bool) reports its epoch and, if known, whether it is the epoch's last. Without it an epoch ends with its iterator.
//
// # Methods of a state
//
// Callbacks and options ask a state, or the result of its method State() any, for methods, also of a pointer
// receiver. A state that changes in place must be copied to be kept:
//
//	Snapshot(ctx context.Context) (loop.Snapshot, error)
//
// callbacks.ReduceOnPlateau needs the learning rate:
//
//	LearningRate() (float64, error)
//	SetLearningRate(rate float64) error
//
// A state that can be read while batches wait for their steps has
//
//	OnRead(f func() error) (remove func(), err error)
//
// which calls the functions registered earlier, then registers f. The state calls f on any goroutine before each
// read, and returns its error. While the data source has control, f makes the steps of all batches that were handed
// out. On a goroutine of data.Prefetch or data.ParallelMap, f returns an error. See also [Job] and checkpoint.State.
//
// # Blocks
//
// Steps that are faster several at once have
//
//	BlockSize() int
//	StepBlock(ctx context.Context, state S, batches []B) (S, []Logs, error)
//
// StepBlock makes the steps in order and returns the logs of each, with the same names. With an error, or ErrStop, it
// returns the logs of the earlier steps and the state after them. A panic loses all steps of the block.
//
// BlockSize returns the largest number of steps in a block, when a run starts. Below 2 the loop calls Step, otherwise
// only StepBlock. A block never crosses a point at which another task, a callback or the run's end is due; but
// schedules of time are asked only between blocks. It ends with a batch 50 ms after its first one, when its steps are
// expected to take 50 ms, or when the data reads the state.
type Stepper[S, B any] interface {
	Step(ctx context.Context, state S, batch B) (S, Logs, error)
}

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

// Turn is a task's iteration: the batch, and state and logs after earlier tasks.
type Turn[S, B any] struct {
	State   S
	Batch   B
	Elapsed Elapsed
	Logs    Logs
}

// Task changes the state or logs something, on a schedule.
type Task[S, B any] struct {
	name  string
	when  Schedule
	do    func(ctx context.Context, turn *Turn[S, B]) error
	start func() func(ctx context.Context, turn *Turn[S, B]) error
	// The function does not see the iteration's time.
	ignoresTime bool
	steps       bool
	measures    bool
	trains      bool
	evaluates   bool
	block       blockStepper[S, B]
	await       abilities.Awaiter[S]
	evaluation  abilities.Evaluator[S]
	err         error
}

// On makes a task of a [Stepper], named by its String, if any.
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
	task.err = abilities.Misdeclared(reflect.TypeOf(stepper), "the step",
		reflect.TypeFor[blockStepper[S, B]](), reflect.TypeFor[abilities.Awaiter[S]](), reflect.TypeFor[abilities.Evaluator[S]](), reflect.TypeFor[abilities.Measurer]())
	task.block, _ = stepper.(blockStepper[S, B])
	task.await, _ = stepper.(abilities.Awaiter[S])
	task.evaluation, _ = stepper.(abilities.Evaluator[S])
	if m, ok := stepper.(abilities.Measurer); ok {
		task.err = errors.Join(task.err, shield.Run(func() error { task.measures = m.Measures(); task.trains = !task.measures; return nil }))
	}
	if s, ok := stepper.(fmt.Stringer); ok {
		task.name = fmt.Sprint(s) // fmt recovers a panic
	}
	return task
}

// OnTurn makes a task of a function that may change the whole iteration.
func OnTurn[S, B any](when Schedule, do func(ctx context.Context, turn *Turn[S, B]) error) Task[S, B] {
	if do == nil {
		return Task[S, B]{when: when, err: errNoFunction}
	}
	return Task[S, B]{when: when, do: do}
}

// OnTurnOf is [OnTurn] with a memory between iterations: start makes the function for each run.
func OnTurnOf[S, B any](when Schedule, start func() func(ctx context.Context, turn *Turn[S, B]) error) Task[S, B] {
	if start == nil {
		return Task[S, B]{when: when, err: errNoFunction}
	}
	return Task[S, B]{when: when, start: start}
}

// Named returns the task with a name for errors and the plan.
func (t Task[S, B]) Named(name string) Task[S, B] {
	t.name = name
	return t
}

// WithErr returns the task with a mistake, which a run reports before its first iteration. nil changes nothing.
func (t Task[S, B]) WithErr(err error) Task[S, B] {
	t.err = errors.Join(t.err, err)
	return t
}

func (t *Task[S, B]) String() string { return label(t.when, t.name) }

func (t *Task[S, B]) activity() activity { return activity{of: t, name: t.name, task: true} }

func label(when Schedule, name string) string {
	if name == "" {
		return when.String()
	}
	return when.String() + ": " + name
}
