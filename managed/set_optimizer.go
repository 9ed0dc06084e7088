package managed

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/optim"
)

// SetOptimizer replaces the state's optimizer from the next step on, and removes the old one's variables, learning
// rate and step count, but no [WithStepOptimizer]. It is an error if values of a checkpoint wait for their first use.
// Existing views return [xla.ErrBusy].
func (s *State) SetOptimizer(ctx context.Context, o *optim.Optimizer) error {
	if err := s.setOptimizer(ctx, o); err != nil {
		return &graphs.Failure{Package: "managed", What: "set the optimizer", Err: err}
	}
	return nil
}

func (s *State) setOptimizer(ctx context.Context, o *optim.Optimizer) error {
	done, err := s.values.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	if n := len(s.model.given.Tensors); n > 0 {
		return fmt.Errorf("%d values of a checkpoint wait for the steps that create their variables: prepare a training step first, "+
			"or restore only the parameters, by State.Transfer, or Load of a flaxlike.Model", n)
	}
	if err := WithOptimizer(o)(s); err != nil {
		return err
	}
	ofState := func(path string) bool {
		if path == model.RootScopePath+stepsByName {
			return false
		}
		for scope := range s.settings.rules {
			if strings.HasPrefix(path, model.RootScopePath+scope+model.ScopeSeparator) {
				return false
			}
		}
		return true
	}
	s.model.given.Forget(func(name string) bool { return ofOptimizers(name) && ofState(name) })
	for v := range s.model.ofOptimizer {
		if !ofState(v.Path()) {
			continue
		}
		if err := s.model.store.DeleteVariable(v.Path()); err != nil {
			return err
		}
		delete(s.model.ofOptimizer, v)
		for _, name := range s.model.namesOf(v) {
			delete(s.saved.origins, name)
		}
	}
	if r := s.saved.restored; r != nil && r.counts != nil {
		left := oldCounts{values: maps.Clone(r.counts.values), own: r.counts.own}
		maps.DeleteFunc(left.values, func(name string, _ *tensors.Tensor) bool { return ofState(name) })
		r.counts = &left
	}
	for i := range s.saved.steps { // the new optimizer has trained nothing
		if step := &s.saved.steps[i]; step.By == "" {
			step.Trains = nil
		}
	}
	return s.values.Keep(func(v *model.Variable) bool { return s.model.store.GetVariable(v.Path()) == v })
}
