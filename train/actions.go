package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/lazo-ml/lazo/loop"
)

// InnerLoops is a number of inner loops of an [Outer] loop. What is to happen by steps is a [loop.Watch] or a [loop.Task] on
// loop.Every(loop.Steps(n)).
type InnerLoops int64

// Action is something that is done at the border of an inner loop. It looks at the state and does not change it. An error
// ends the run; [loop.ErrStop] ends it as a wish, after what else is due at this border.
//
// Jaxloop counts inner loops or steps, as the action was given to a loop or to a step, and steps anew in each inner
// loop; here an action counts inner loops alone, because the unit is then in the type.
type Action[S any] struct {
	// Name stands in errors.
	Name string
	// Every is at which inner loops the action is due, by their number: 2 means the 2nd, the 4th, …; zero means each. An
	// action of an [EvalSpec] counts evaluations of that spec in this run.
	Every InnerLoops
	Do    func(ctx context.Context, at Border[S]) error
	// Close, if it is given, is called once when the run is over, however it ended.
	Close func(ctx context.Context) error
}

// Border is what an action sees.
type Border[S any] struct {
	// Inner is the inner loop that has ended, or the evaluation. For a begin action it has the number of the inner loop that
	// begins, and no outputs.
	Inner
	State S
	// Evaluations are the newest of each name.
	Evaluations map[string]Inner
	// Background takes work that goes on beside the training.
	Background *Background
}

// SaveTo is an action that saves the state, also at a border in which the run is cancelled. Checkpoints that are an [io.Closer] are closed when the run is over.
func SaveTo[S any](checkpoints Checkpoints[S], every InnerLoops) Action[S] {
	a := Action[S]{Name: "save checkpoint", Every: every}
	if checkpoints == nil {
		return a // with nothing to do, which the run refuses
	}
	a.Do = func(ctx context.Context, at Border[S]) error {
		return checkpoints.Save(context.WithoutCancel(ctx), at.State, at.Elapsed)
	}
	if c, ok := checkpoints.(io.Closer); ok {
		a.Close = func(context.Context) error { return c.Close() }
	}
	return a
}

func (a Action[S]) label() string {
	if a.Name == "" {
		return "action"
	}
	return "action " + a.Name
}

// dueAt tells whether a number of inner loops, or evaluations, is one at which the action is due.
func (a Action[S]) dueAt(number int64) bool { return number%int64(max(a.Every, 1)) == 0 }

// closing is an option that closes actions which the run calls by itself.
func closing[S any](actions []Action[S]) (options []loop.Option) {
	for _, a := range actions {
		if a.Close != nil {
			options = append(options, attend(a.label(), loop.AtEnd, nil, a.Close))
		}
	}
	return options
}

// attend is a callback with an end; both may be nil.
func attend(name string, when loop.Schedule, watch loop.Watcher, end func(context.Context) error) loop.Option {
	return loop.Callback{Name: name, When: when, Start: func(loop.Beginning) (loop.Attendant, error) { return attendant{watch, end}, nil }}
}

type attendant struct {
	watch loop.Watcher
	end   func(context.Context) error
}

func (a attendant) Watch(ctx context.Context, r loop.Report) error {
	if a.watch == nil {
		return nil
	}
	return a.watch(ctx, r)
}

func (a attendant) End(ctx context.Context, _ loop.Ending) error {
	if a.end == nil {
		return nil
	}
	return a.end(ctx)
}

// Background runs functions beside the training. The zero value is ready. A run has one of its own ([Border].Background):
// it looks for errors before the actions of each border, where they end the run, and waits for all functions when it is over.
// There is no limit to how many run at once: an action that is due again before its work is done adds to it.
//
// Jaxloop has one such group for the whole process; ours belongs to a run, because the errors of one run are not
// those of another.
type Background struct {
	running sync.WaitGroup
	mu      sync.Mutex
	errs    []error
}

// Go runs f on a goroutine of its own. A panic in it becomes a [*loop.PanicError]. A state that changes in place must not be
// used in f.
func (b *Background) Go(name string, f func() error) {
	b.running.Go(func() {
		err := errNoFunction
		if f != nil {
			err = shielded(f)
		}
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.errs = append(b.errs, fmt.Errorf("background: %s: %w", name, err))
		}
	})
}

// Err gives the errors of the functions that have ended, joined, and forgets them. It does not wait. A [loop.ErrStop] is
// left out where another function failed, so that a failure never looks like a wish to stop.
func (b *Background) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := b.errs
	b.errs = nil
	if failed := slices.DeleteFunc(slices.Clone(errs), isStop); len(failed) > 0 {
		errs = failed
	}
	return errors.Join(errs...)
}

// Wait waits for all functions, then it is Err.
func (b *Background) Wait() error {
	b.running.Wait()
	return b.Err()
}

// end waits when a run is over; who wants to stop has what he wants.
func (b *Background) end(context.Context) error {
	if err := b.Wait(); !isStop(err) {
		return err
	}
	return nil
}

func isStop(err error) bool { return errors.Is(err, loop.ErrStop) }

var (
	errNoFunction = errors.New("no function given")
	errGoexit     = errors.New("runtime.Goexit was called")
)

// shielded makes a panic of f an error, and a Goexit too, for which f needs a goroutine of its own.
func shielded(f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if returned {
				return
			}
			p := &loop.PanicError{Value: recover(), Stack: debug.Stack()}
			if p.Value == nil {
				p.Value = errGoexit
			}
			err = p
		}()
		err = f()
		returned = true
	}()
	<-done
	return err
}
