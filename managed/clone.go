package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/strategies"
)

// Clone returns an independent copy of the state under a strategy, like [State.Strategy]: both make the same further
// steps. They share Steppers and the optimizer value. The caller closes the clone.
func (s *State) Clone(ctx context.Context, under strategies.Strategy) (*State, error) {
	if err := usable(under, "the state's own"); err != nil {
		return nil, fmt.Errorf("managed: clone: %w", err)
	}
	c, err := s.clone(ctx, under)
	if err != nil {
		return nil, fmt.Errorf("managed: clone under %v: %w", under, err)
	}
	return c, nil
}

func (s *State) clone(ctx context.Context, under strategies.Strategy) (*State, error) {
	done, err := s.values.ReadAll(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	c := blank(under)
	c.model.takeSettings(&s.model)
	c.settings = s.settings
	c.settings.rules = maps.Clone(s.settings.rules)
	c.saved.origins, c.saved.steps, c.saved.partial = maps.Clone(s.saved.origins), slices.Clone(s.saved.steps), s.saved.partial
	if r := s.saved.restored; r != nil {
		own := *r
		if r.from == nil {
			own.tensors = c.model.given.Tensors
		}
		c.saved.restored = &own
	}
	made, err := s.cloneVariables(c)
	if err != nil {
		return nil, err
	}
	if err := s.values.CopyInto(ctx, &c.values, made); err != nil {
		return nil, err
	}
	return c, nil
}

func (d *definition) takeSettings(of *definition) {
	d.optimizer, d.startRate, d.policy, d.given = of.optimizer, of.startRate, of.policy, of.given.Clone()
	for path, value := range of.store.IterParams() {
		d.store.SetParam(path, value)
	}
}

// cloneVariables skips those of a failed step.
func (s *State) cloneVariables(c *State) ([]*model.Variable, error) {
	all := make([]*model.Variable, s.values.Len())
	for v := range s.model.store.IterVariables() {
		at := s.values.Place(v)
		if at < 0 && v.Path() != store.RandomName {
			continue
		}
		made := c.model.store.VariableWithShape(v.Path(), v.Shape(), nil).SetTrainable(v.Trainable)
		host := tensors.FromShape(v.Shape())
		if at < 0 {
			t, err := store.HostValue(v)
			if err != nil || t == nil {
				return nil, errors.Join(errors.New("the random state has no value"), err)
			}
			host = t
		}
		if err := made.SetValuePreservingOld(host); err != nil {
			return nil, err
		}
		if at < 0 {
			continue
		}
		if err := store.Empty(made); err != nil {
			return nil, err
		}
		all[at] = made
		if to, ok := s.model.resets[v]; ok {
			c.model.resets[made] = to
		}
		if s.model.ofOptimizer[v] {
			c.model.ofOptimizer[made] = true
		}
		if of := s.model.numbers[v.Path()]; of != nil {
			c.model.numbers[v.Path()] = slices.Clone(of)
		}
	}
	return all, nil
}
