package outer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lazo-ml/lazo/loop"
)

// Group runs functions beside the training. The zero value is ready. Each run has one ([Border].Group): errors of its
// functions end the run at the next border, before the actions, and the end of the run waits for all functions. There
// is no limit to how many run at once: an action that is due again before its function has ended adds another.
//
// For what writes logs take callbacks.Background, whose queue is bounded.
type Group struct {
	running sync.WaitGroup
	mu      sync.Mutex
	errs    []error
}

// Go runs f on a goroutine of its own. A panic in it becomes a [*loop.PanicError]. It must not use a state that
// changes in place.
func (g *Group) Go(name string, f func() error) {
	g.running.Go(func() {
		err := loop.ErrNoFunction
		if f != nil {
			err = loop.Shield(f)
		}
		if err == nil {
			return
		}
		if p, ok := err.(*loop.PanicError); ok && !strings.HasPrefix(p.Error(), "panic: ") {
			name += ": panic" // a Goexit
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.errs = append(g.errs, fmt.Errorf("background: %s: %w", name, err))
	})
}

// Err gives the errors of the functions that have ended, joined, and forgets them. It does not wait. A [loop.ErrStop]
// is left out where another function failed, so that a failure never looks like a wish to stop.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	errs := g.errs
	g.errs = nil
	if failed := slices.DeleteFunc(slices.Clone(errs), isStop); len(failed) > 0 {
		errs = failed
	}
	return errors.Join(errs...)
}

// Wait waits for all functions, then it is Err.
func (g *Group) Wait() error {
	g.running.Wait()
	return g.Err()
}

// end waits when a run is over. A wish to stop is no error then.
func (g *Group) end(context.Context) error {
	if err := g.Wait(); !isStop(err) {
		return err
	}
	return nil
}
