// Package gate is a lock for values that several goroutines use: readers share a value, a change excludes all others.
// Waiting is first-come, first-served and ends with the context.
//
// docs/decisions/0049 has the rules. Entering a gate twice blocks forever: code that calls user code while it holds a
// gate must refuse such uses of the same value.
package gate

import (
	"context"
	"errors"
	"reflect"
	"sync"
)

var ErrClosed = errors.New("used after Close")

// ErrOwnerClosed: the value's runtime was closed.
var ErrOwnerClosed = errors.New("the runtime was closed before it: close states and models first")

// Once keeps the first of several joined [ErrOwnerClosed].
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

// The zero Gate is open. Do not copy it.
type Gate struct {
	mu      sync.Mutex
	readers int
	changer bool
	closed  bool
	queue   []*turn
	empty   chan struct{} // closed when a closed gate is unused; nil before Close
	freed   chan struct{} // closed after Close freed the value
}

type turn struct {
	change bool
	come   chan struct{} // closed at admission or Close
	in     bool
}

// Read waits for the end of changes and prevents them until DoneReading. It returns [ErrClosed], or the cause of a
// context that has ended.
func (g *Gate) Read(ctx context.Context) error { return g.Enter(ctx, false) }

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

func (g *Gate) give(t *turn, why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case t.in: // admitted at the last moment
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
	g.next() // it may have blocked others
	return why
}

func (g *Gate) admits(change bool) bool { return !g.changer && (!change || g.readers == 0) }

func (g *Gate) admit(change bool) {
	if change {
		g.changer = true
	} else {
		g.readers++
	}
}

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
		close(g.empty)
	}
}

func (g *Gate) DoneReading() { g.Leave(false) }

func (g *Gate) DoneChanging() { g.Leave(true) }

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

// Close refuses new uses, ends the waits of others, waits until current uses end, then calls free once, if not nil.
// Each call of Close returns after free has returned, so the owner may be closed after any of them. Only the first
// returns free's error. free must not enter or close the gate.
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
