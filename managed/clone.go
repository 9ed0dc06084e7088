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

// Clone makes an independent state of the same values under a strategy, which may be this state's own
// ([State.Strategy]). Parameters, optimizer state, random state, metrics and counters are those of this moment, so both
// make the same steps from here on. The steppers serve both; only the optimizer value itself is shared. The clone has
// to be closed by itself. After an error there is no clone, and nothing of one is left.
//
// It can be used before the first step too: the clone then draws the same initial values.
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
		if r.from == nil { // then what waits is what is given
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

// takeSettings takes over all but the variables.
func (d *definition) takeSettings(of *definition) {
	d.optimizer, d.startRate, d.policy, d.given = of.optimizer, of.startRate, of.policy, of.given
	d.given.Tensors = maps.Clone(of.given.Tensors)
	for path, value := range of.store.IterParams() {
		d.store.SetParam(path, value)
	}
}

// cloneVariables makes the variables of a clone, by places, without their values on the device. One that no step has
// come to need yet, because the step that brought it in failed, is left out: the step makes it again.
func (s *State) cloneVariables(c *State) ([]*model.Variable, error) {
	all := make([]*model.Variable, s.values.Len())
	for v := range s.model.store.IterVariables() { // in GoMLX's order, in which optimizers see them
		at := s.values.Place(v)
		if at < 0 && v.Path() != store.RandomName {
			continue
		}
		made := c.model.store.VariableWithShape(v.Path(), v.Shape(), nil).SetTrainable(v.Trainable)
		host := tensors.FromShape(v.Shape())
		if at < 0 { // the seed's, before the first step
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
		if err := store.Empty(made); err != nil { // the device has it
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
