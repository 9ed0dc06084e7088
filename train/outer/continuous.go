package outer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Checkpoints is a place from which states are read, each by the number of steps in it.
type Checkpoints[S any] interface {
	// Steps lists the checkpoints that are there and complete, in any order.
	Steps(ctx context.Context) ([]int64, error)
	// Restore gives the state of a checkpoint and how far its training was. The state into is as the program made it,
	// and may be changed in place; where Restore gives an error it must still be good.
	Restore(ctx context.Context, into S, step int64) (S, loop.Elapsed, error)
}

// restore also checks the number of steps that comes with the state.
func restore[S any](ctx context.Context, c Checkpoints[S], into S, step int64) (S, loop.Elapsed, error) {
	state, at, err := c.Restore(ctx, into, step)
	if err == nil && at.Steps != step {
		err = fmt.Errorf("it says that it has %d steps", at.Steps)
	}
	if err != nil {
		return into, loop.Elapsed{}, fmt.Errorf("restore the checkpoint of step %d: %w", step, err)
	}
	return state, at, nil
}

// StoppedFile is the name of the file that a [Loop] writes into its Dir after a run that ended well: no more
// checkpoints will come. Its one line is the reason. The next run removes it.
const StoppedFile = "STOPPED"

// writeStopped writes under another name first, so that nobody reads half a file.
func writeStopped(dir, reason string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	name := filepath.Join(dir, StoppedFile)
	if err := remove(name + ".tmp"); err != nil { // of a run that was killed, or a pipe, to which a write would wait
		return err
	}
	file, err := os.OpenFile(name+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(reason + "\n")
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Continuous evaluates checkpoints as they appear: those that are there first, in the order of their steps, then the
// ones that another process saves. It ends when Stop says so, when an evaluation or its action returns
// [loop.ErrStop], when the context ends, or with an error.
type Continuous[S, B any] struct {
	Checkpoints Checkpoints[S]
	// Evals run on each checkpoint. Each restores it into the state that Run was given, so that none sees what
	// another one did. Their Every, which counts inner loops, is not used; their When is.
	Evals []Eval[S, B]
	// Newest leaves out, at each look, all checkpoints but the newest.
	Newest bool
	// Poll is the time between two looks; zero means 10 seconds.
	Poll time.Duration
	// Stop tells that no more checkpoints will come. It is asked before each look, so that a checkpoint that was
	// saved before it became true is evaluated. Without it, the [StoppedFile] in Dir tells.
	Stop func(context.Context) (bool, error)
	Dir  string
}

// ContinuousResult is how it ended. [loop.Result.State] is that of the last checkpoint that was evaluated, Elapsed
// how far its training was; if there was none, they are what Run was given and zero. The history has a row for each
// checkpoint; its steps count checkpoints, and stats.step is that of the training. The Reason is [loop.DataEnded]
// where Stop ended it.
type ContinuousResult[S any] struct {
	loop.Result[S]
	// Evaluations has the newest of each name.
	Evaluations map[string]Inner
	// Missed are checkpoints that were listed, and gone when they were to be restored.
	Missed []int64
}

const defaultPoll = 10 * time.Second

// Run evaluates until the end. Options are those of a loop whose steps are checkpoints: loop.WatchEntry("loss_test",
// …).
func (c Continuous[S, B]) Run(ctx context.Context, state S, options ...loop.Option) (ContinuousResult[S], error) {
	if err := c.check(); err != nil {
		return ContinuousResult[S]{Result: failed(state)}, fmt.Errorf("outer: continuous evaluation: %w", err)
	}
	r := &continuousRun[S, B]{Continuous: c, evaluations: newEvaluations(), state: state}
	options = append(ends(c.Evals, &r.group), options...)
	result, err := loop.New(r.tasks()...).Run(ctx, state, r.arriving(ctx), options...)
	result.State, result.Elapsed = r.state, r.elapsed
	return ContinuousResult[S]{result, r.results, r.missed}, err
}

func (c Continuous[S, B]) check() error {
	var errs []error
	if c.Checkpoints == nil {
		errs = append(errs, errors.New("no Checkpoints given"))
	}
	if len(c.Evals) == 0 {
		errs = append(errs, errors.New("no Evals given"))
	}
	if c.Poll < 0 {
		errs = append(errs, fmt.Errorf("want a Poll that is not negative, got %s", c.Poll))
	}
	if c.Stop == nil && c.Dir == "" {
		errs = append(errs, errors.New("nothing would end it: want Stop or Dir"))
	}
	return errors.Join(append(errs, checkEvals(c.Evals))...)
}

type continuousRun[S, B any] struct {
	Continuous[S, B]
	evaluations
	// What was evaluated last.
	state   S
	elapsed loop.Elapsed
	missed  []int64
}

// arriving gives the steps of the checkpoints as they appear.
func (r *continuousRun[S, B]) arriving(ctx context.Context) loop.Data[int64] {
	return func(yield func(int64, error) bool) {
		for last := int64(-1); ; {
			stopped, steps, err := r.look(ctx, last)
			if err != nil {
				yield(0, err)
				return
			}
			for _, step := range steps {
				if !yield(step, nil) {
					return
				}
				last = step
			}
			if stopped || !r.wait(ctx) {
				return
			}
		}
	}
}

// look finds the checkpoints behind a step.
func (r *continuousRun[S, B]) look(ctx context.Context, last int64) (stopped bool, steps []int64, err error) {
	if stopped, err = r.stopped(ctx); err != nil {
		return false, nil, fmt.Errorf("is the training over: %w", err)
	}
	if steps, err = r.Checkpoints.Steps(ctx); err != nil {
		return false, nil, fmt.Errorf("list checkpoints: %w", err)
	}
	steps = slices.DeleteFunc(slices.Clone(steps), func(step int64) bool { return step <= last })
	slices.Sort(steps)
	if r.Newest && len(steps) > 1 {
		steps = steps[len(steps)-1:]
	}
	return stopped, slices.Compact(steps), nil
}

func (r *continuousRun[S, B]) stopped(ctx context.Context) (bool, error) {
	if r.Stop != nil {
		return r.Stop(ctx)
	}
	_, err := os.Stat(filepath.Join(r.Dir, StoppedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// wait tells whether the context lasted.
func (r *continuousRun[S, B]) wait(ctx context.Context) bool {
	poll := cmp.Or(r.Poll, defaultPoll)
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *continuousRun[S, B]) tasks() (tasks []loop.Task[S, int64]) {
	for _, e := range r.Evals {
		tasks = append(tasks, loop.OnTurn(loop.EachStep, func(ctx context.Context, t *loop.Turn[S, int64]) error {
			return r.evaluate(ctx, e, t)
		}).Named(e.label()))
	}
	return tasks
}

// evaluate leaves the state of the turn as it is, so that each evaluation restores into the first one.
func (r *continuousRun[S, B]) evaluate(ctx context.Context, e Eval[S, B], t *loop.Turn[S, int64]) error {
	step := t.Batch
	if e.When != nil && !e.When(Inner{Elapsed: loop.Elapsed{Steps: step}}) {
		return nil
	}
	if slices.Contains(r.missed, step) {
		return nil
	}
	state, elapsed, err := restore(ctx, r.Checkpoints, t.State, step)
	if err != nil {
		// Whoever saves also removes old ones, perhaps since we looked.
		if steps, listErr := r.Checkpoints.Steps(ctx); listErr == nil && !slices.Contains(steps, step) {
			r.missed = append(r.missed, step)
			return nil
		}
		return err
	}
	turn := loop.Turn[S, B]{State: state, Logs: t.Logs}
	err = e.evaluate(ctx, &r.evaluations, &turn, Inner{Elapsed: elapsed})
	if err != nil && !isStop(err) {
		return fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	r.state, r.elapsed, t.Logs = state, elapsed, turn.Logs
	t.Logs.Set(Stats, "step", loop.Number(step))
	if failed := r.group.Err(); failed != nil {
		return failed
	}
	return err
}
