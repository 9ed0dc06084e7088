// Package gate is lazo's one rule for values that several goroutines use: readers share a value, a change excludes all
// others, all wait in the order in which they came, and a wait ends with its context. Close refuses new uses, waits
// for those that are under way and frees the value: every call of it returns after that.
//
// A gate is held for a single piece of work: a program's start, a copy, a build; never for a whole run. Whoever calls a
// caller's code while it holds one, as package managed does when it builds a step, refuses what that code asks of the
// same value: a gate does not know who is inside, and to enter it twice is to wait for ever.
package gate

import (
	"context"
	"errors"
	"reflect"
	"sync"
)

// ErrClosed: a value was used after its Close.
var ErrClosed = errors.New("used after Close")

// ErrOwnerClosed: a value was used, or closed, after the Close of its runtime.
var ErrOwnerClosed = errors.New("the runtime was closed before it: close states and models first")

// Once is the error of a Close with one [ErrOwnerClosed]: of several that are joined in it, the first stands for all.
func Once(err error) error {
	kept := false
	var once func(error) error
	once = func(err error) error {
		if !errors.Is(err, ErrOwnerClosed) {
			return err
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok && reflect.TypeOf(err) == joinType {
			var rest []error
			for _, e := range joined.Unwrap() {
				rest = append(rest, once(e))
			}
			return errors.Join(rest...)
		}
		if kept {
			return nil
		}
		kept = true
		return err
	}
	return once(err)
}

var joinType = reflect.TypeOf(errors.Join(ErrClosed))

// Gate lets uses of a value begin and end. The zero Gate is open, without a use under way. It is not to be copied.
type Gate struct {
	mu      sync.Mutex
	readers int
	changer bool
	closed  bool
	queue   []*turn       // in the order in which they came
	empty   chan struct{} // of a closed gate: closed when no use is under way; nil before Close
	freed   chan struct{} // of a closed gate: closed when its Close has freed
}

// turn is one that waits.
type turn struct {
	change bool
	come   chan struct{} // closed when it has come, or the gate is closed
	in     bool          // it has come
}

// Read waits until nothing changes, and keeps it so until DoneReading. It fails with [ErrClosed], or with the cause of
// a context that has ended.
func (g *Gate) Read(ctx context.Context) error { return g.Enter(ctx, false) }

// Change waits until no other use is under way, and excludes others until DoneChanging. It fails as Read does.
func (g *Gate) Change(ctx context.Context) error { return g.Enter(ctx, true) }

// Enter is Change or Read; Leave ends it.
func (g *Gate) Enter(ctx context.Context, change bool) error {
	g.mu.Lock()
	switch {
	case g.closed:
		g.mu.Unlock()
		return ErrClosed
	case len(g.queue) == 0 && g.admits(change):
		g.admit(change)
		g.mu.Unlock()
		return nil
	case ctx.Err() != nil:
		g.mu.Unlock()
		return context.Cause(ctx)
	}
	t := &turn{change: change, come: make(chan struct{})}
	g.queue = append(g.queue, t)
	g.mu.Unlock()
	select {
	case <-t.come:
	case <-ctx.Done():
	}
	return g.give(t, context.Cause(ctx))
}

// give gives the result of a wait; why is the error that ended it early.
func (g *Gate) give(t *turn, why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case t.in: // it has come just then
		return nil
	case g.closed:
		return ErrClosed
	}
	for i := range g.queue {
		if g.queue[i] == t {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			break
		}
	}
	g.next() // it may have kept others waiting
	return why
}

// admits tells whether one more may go in, as far as those inside are concerned.
func (g *Gate) admits(change bool) bool { return !g.changer && (!change || g.readers == 0) }

func (g *Gate) admit(change bool) {
	if change {
		g.changer = true
	} else {
		g.readers++
	}
}

// next lets in those at the front of the queue, as far as they may be inside together.
func (g *Gate) next() {
	for len(g.queue) > 0 && g.admits(g.queue[0].change) {
		t := g.queue[0]
		g.queue[0] = nil
		g.queue = g.queue[1:]
		g.admit(t.change)
		t.in = true
		close(t.come)
	}
	if g.closed && g.readers == 0 && !g.changer {
		close(g.empty) // once: no use begins any more
	}
}

// DoneReading ends a Read.
func (g *Gate) DoneReading() { g.Leave(false) }

// DoneChanging ends a Change.
func (g *Gate) DoneChanging() { g.Leave(true) }

// Leave ends an Enter.
func (g *Gate) Leave(change bool) {
	g.mu.Lock()
	if change {
		g.changer = false
	} else {
		g.readers--
	}
	if len(g.queue) > 0 || g.closed {
		g.next()
	}
	g.mu.Unlock()
}

// Close refuses new uses, ends the waits for one, waits for the uses that are under way, and then calls free, once,
// however often it is called. Every call returns after free has returned; the one that called it gives its error. So
// whoever closes a model may then close its runtime, even if another goroutine closed the model first. A nil free frees
// nothing. free must not enter the gate or close it.
func (g *Gate) Close(free func() error) error {
	g.mu.Lock()
	first := !g.closed
	if first {
		g.closed = true
		for _, t := range g.queue {
			close(t.come)
		}
		g.queue = nil
		g.empty, g.freed = make(chan struct{}), make(chan struct{})
		g.next()
	}
	empty, freed := g.empty, g.freed
	g.mu.Unlock()
	if !first {
		<-freed
		return nil
	}
	defer close(freed)
	<-empty
	if free == nil {
		return nil
	}
	return free()
}
