package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/lazo-ml/lazo/strategies"
)

// Last is the last run of a step, which may go on. Those who read share it, so it has a lock of its own.
type Last struct {
	mu      sync.Mutex
	running strategies.Running // nil if it is known to be over
	lost    error              // why the values are gone
}

// Settled waits for the run, and gives an error where the values are lost.
func (r *Last) Settled() error {
	if err := r.Follow(nil); err != nil {
		return err
	}
	return r.Usable()
}

// Usable is an error where the values are lost, as far as that is known.
func (r *Last) Usable() error {
	if err := r.Lost(); err != nil {
		return fmt.Errorf("an earlier step failed: %w", err)
	}
	return nil
}

// Lost is why the values are gone, as far as that is known; nil if they are not. Nobody can tell what is left to free
// of lost values.
func (r *Last) Lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Follow has another run take the place of the running one, which is waited for: with one run on the device and one
// after it, the device always has work.
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

// Fails notes an error by which the values are lost.
func (r *Last) Fails(err error) {
	if errors.Is(err, strategies.ErrStateLost) {
		r.mu.Lock()
		r.lost = err
		r.mu.Unlock()
	}
}
