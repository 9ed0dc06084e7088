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
)

// ErrClosed reports a use of a state, snapshot or view after its Close.
var ErrClosed = gate.ErrClosed

// Snapshot copies all values to the host. Training from them is bit-identical. It outlives a loss of the state
// ([strategies.ErrStateLost]).
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

// Only removing variables changes the store's order.
type snapshot struct {
	of        *State
	mu        sync.Mutex // for values
	variables []*model.Variable
	values    []*tensors.Tensor
}

// Restore puts all values back, or none after an error, and repairs lost values. The state takes twice its device
// memory meanwhile. Variables that the state has gained since are removed.
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
		return errors.New("managed: restore: SetOptimizer or Restore has changed the state's variables since the snapshot: take another snapshot")
	}
	if len(c.values) == 0 && len(now) > 0 {
		return errors.New("managed: restore: the snapshot is of a state without values, before its first step: make a new state")
	}
	newer := map[*model.Variable]bool{}
	for _, v := range now[len(c.values):] {
		newer[v] = true
	}
	_ = s.values.Last.Follow(nil) // replaced in any case
	put, err := s.values.PutEach(ctx, func(at int) (*tensors.Tensor, error) {
		if at >= len(c.values) {
			return nil, nil
		}
		return c.values[at].LocalClone()
	})
	if err != nil {
		return fmt.Errorf("managed: restore: %w", err)
	}
	if err := s.putBack(put, newer); err != nil {
		return fmt.Errorf("managed: restore: free the earlier values: %w", err)
	}
	return nil
}

// Close frees the copy, before or after the state's Close. A second Close does nothing.
func (c *snapshot) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.values {
		t.FinalizeLocal()
	}
	c.values = nil
	return nil
}
