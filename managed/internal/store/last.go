package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/lazo-ml/lazo/strategies"
)

// Last is the last started run, with its own lock: readers share it.
type Last struct {
	mu      sync.Mutex
	running strategies.Running // nil if finished
	lost    error
}

// Settled waits for the run. An error reports lost values.
func (r *Last) Settled() error {
	if err := r.Follow(nil); err != nil {
		return err
	}
	return r.Usable()
}

func (r *Last) Usable() error {
	if err := r.Lost(); err != nil {
		return fmt.Errorf("an earlier step failed: %w", err)
	}
	return nil
}

// Lost returns why the values are lost. Then it is unknown which buffers exist.
func (r *Last) Lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Follow sets the next run and waits for the previous one: one is always queued.
func (r *Last) Follow(next strategies.Running) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.running
	r.running = next
	if last == nil {
		return nil
	}
	err := last.Wait()
	if errors.Is(err, strategies.ErrStateLost) {
		r.lost = err
	}
	return err
}

func (r *Last) Fails(err error) {
	if errors.Is(err, strategies.ErrStateLost) {
		r.mu.Lock()
		r.lost = err
		r.mu.Unlock()
	}
}
