package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/xla"
)

var (
	// ErrClosed: a state, or a snapshot or a view of one, was used after its Close.
	ErrClosed = gate.ErrClosed
	// ErrBusy: a state was asked for what cannot wait for its turn; see [State].
	ErrBusy = xla.ErrBusy
	// ErrNewerVariables: a snapshot cannot be restored, because it does not say what to do with variables that came into
	// being after it.
	ErrNewerVariables = errors.New("the state has variables that came into being after the snapshot")
)

// Snapshot copies all values of the state to the host: the parameters, all that the optimizer keeps (the learning rate
// and its counters too) and the random state, so that training that goes on from a restored state makes the same bits
// again. It takes as much memory of the host as the state takes of the device, and stays good whatever becomes of the
// state: steps that write over it in place, and the loss of it ([strategies.ErrStateLost]).
//
// Ciclo's states never change, so that to keep one is to point at it; ours are written in place, which saves each step
// a second copy of the model, and costs one here.
func (s *State) Snapshot(ctx context.Context) (loop.Snapshot, error) {
	done, err := s.values.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("managed: snapshot: %w", err)
	}
	defer done()
	values, err := s.values.FetchAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("managed: snapshot: %w", err)
	}
	return &snapshot{of: s, variables: s.values.Variables(), values: values}, nil
}

// snapshot holds the values in the order of the store. That order changes only where variables are taken out, as
// by SetOptimizer.
type snapshot struct {
	of        *State
	mu        sync.Mutex // guards values
	variables []*model.Variable
	values    []*tensors.Tensor // nil once closed
}

// Restore puts the values back, all or, after an error, none of them; until the last one is on the device the old ones
// stay there too, as they do in the first run of a step. It makes a state good again whose values were lost.
//
// A state that has got variables since then cannot be restored ([ErrNewerVariables]): part of it would be of then and
// part of now. So take a snapshot after the first of all steps that bring variables with them.
func (c *snapshot) Restore(ctx context.Context) error {
	s := c.of
	done, err := s.values.ChangeAll(ctx)
	if err != nil {
		return fmt.Errorf("managed: restore: %w", err)
	}
	defer done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		return fmt.Errorf("managed: restore: the snapshot: %w", ErrClosed)
	}
	now := s.values.Variables()
	if len(now) < len(c.variables) || !slices.Equal(now[:len(c.variables)], c.variables) {
		return errors.New("managed: restore: the state has other variables since the snapshot, by SetOptimizer or by Restore: take another one")
	}
	var newer []string
	for at := len(c.values); at < s.values.Len(); at++ {
		newer = append(newer, s.values.NamesOf(at)...)
	}
	if len(newer) > 0 {
		return fmt.Errorf("managed: restore: %w: %q; take the snapshot after the first step of each kind", ErrNewerVariables, newer)
	}
	_ = s.values.Last.Follow(nil) // whatever came of it, its values go
	put, err := s.values.PutEach(ctx, func(at int) (*tensors.Tensor, error) { return c.values[at].LocalClone() })
	if err != nil {
		return fmt.Errorf("managed: restore: %w", err)
	}
	if err := s.values.Replace(put); err != nil {
		return fmt.Errorf("managed: restore: the values of before: %w", err)
	}
	return nil
}

// Close frees the copy; a second Close does nothing. The state may be closed before or after.
func (c *snapshot) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.values {
		t.FinalizeLocal()
	}
	c.values = nil
	return nil
}
