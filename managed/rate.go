package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla"
)

// ErrNoLearningRate reports that the state has no learning rate yet.
var ErrNoLearningRate = errors.New("no learning rate")

var _ abilities.LearningRater = (*State)(nil)

const rateName = model.RootScopePath + optimizer.Scope + model.ScopeSeparator + "learning_rate"

// LearningRate reads the optimizer's base rate from the device: 0.1 in float32 is 0.10000000149011612. It lacks the
// optimizer's own changes, like a decay. Before the first training step it is [ErrNoLearningRate], unless a rate was
// set.
func (s *State) LearningRate() (float64, error) {
	rate, err := s.rate(func() error { return nil })
	if err != nil {
		return 0, fmt.Errorf("managed: learning rate: %w", err)
	}
	return rate, nil
}

func (s *State) rate(also func() error) (float64, error) {
	done, err := s.values.ReadAll(context.Background())
	if err != nil {
		return 0, err
	}
	defer done()
	rate, err := s.learningRate()
	if err != nil {
		return 0, err
	}
	return rate, also()
}

func (s *State) learningRate() (float64, error) {
	at, err := s.rateIndex()
	if err != nil {
		return 0, err
	}
	if at < 0 {
		if t := s.model.given.Of(rateName); t != nil {
			return scalarOf(t)
		}
		if s.model.startRate != nil {
			return *s.model.startRate, nil
		}
		if err := s.model.tryOptimizer(); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%w before the first training step: it can be set, but not read", ErrNoLearningRate)
	}
	t, err := s.values.Fetch(at)
	if err != nil {
		return 0, err
	}
	return scalarOf(t)
}

// RatesInForce returns [State.LearningRate] times the last update's factors at the end of an optim chain: one rate
// under "", or one per group if optim.Groups scale. It is an error if the chain scales elsewhere. For GoMLX's
// optimizers it is the base rate.
func (s *State) RatesInForce() (map[string]float64, error) {
	var factors map[string]float64
	rate, err := s.rate(func() (err error) {
		factors, err = s.factors()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("managed: learning rate: %w", err)
	}
	for name := range factors {
		factors[name] *= rate
	}
	return factors, nil
}

func (s *State) factors() (map[string]float64, error) {
	if s.model.optimizer == nil {
		return map[string]float64{"": 1}, nil
	}
	var wrong error
	factors, err := s.model.optimizer.Factors(func(count string) int64 {
		at := s.values.Place(s.model.store.GetVariable(count))
		if at < 0 {
			return 0
		}
		t, err := s.values.Fetch(at)
		if err != nil {
			wrong = err
			return 0
		}
		updates, ok := t.Value().(int64)
		if !ok {
			wrong = fmt.Errorf("%s is %s, expected an int64", count, t.Shape())
		}
		return max(updates-1, 0)
	})
	return factors, cmp.Or(err, wrong)
}

// SetLearningRate sets the optimizer's learning rate, also before the first training step, without compiling. The rate
// must be finite, not negative, and representable in the variable's dtype.
//
// Without its own optimizer, the state uses its one compiled step's with [WithStepOptimizer]; for several, use
// [State.SetValue]. A schedule in the model's graph overwrites the rate.
func (s *State) SetLearningRate(rate float64) error {
	if err := s.setLearningRate(rate); err != nil {
		return fmt.Errorf("managed: set the learning rate to %g: %w", rate, err)
	}
	return nil
}

func (s *State) setLearningRate(rate float64) error {
	if !(rate >= 0) || math.IsInf(rate, 0) {
		return errors.New("expected a finite number that is not negative")
	}
	done, err := s.values.ChangeAll(context.Background())
	if err != nil {
		return err
	}
	defer done()
	at, err := s.rateIndex()
	if err != nil {
		return err
	}
	if given := s.model.given.Of(rateName); at < 0 && given != nil {
		t, err := rateTensor(rate, given.DType())
		if err == nil {
			s.model.given.Set(rateName, t)
		}
		return err
	}
	if at < 0 {
		return s.startAt(rate)
	}
	t, err := rateTensor(rate, s.values.Variable(at).DType())
	if err != nil {
		return err
	}
	return s.values.Set(at, t)
}

func (s *State) rateIndex() (int, error) {
	if err := s.values.Last.Settled(); err != nil {
		return 0, err
	}
	if s.model.optimizer == nil {
		return s.rateOfBy()
	}
	return s.values.Place(s.model.store.GetVariable(rateName)), nil
}

func (s *State) rateOfBy() (int, error) {
	var found []string
	at := -1
	for i, v := range s.values.Variables() {
		if name := v.Path(); strings.HasSuffix(name, rateName) {
			found, at = append(found, name), i
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("%w: the state has no optimizer, and no step with managed.WithStepOptimizer has added one yet (Stepper.Prepare adds it)", ErrNoLearningRate)
	case 1:
		return at, nil
	}
	return 0, fmt.Errorf("%w of the state's own: steps with managed.WithStepOptimizer have %q: use Value and SetValue", ErrNoLearningRate, found)
}

func (d *definition) tryOptimizer() error {
	host, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		return err
	}
	trial := model.NewStore()
	err = graphs.Catch(func() {
		g := graph.NewGraph(host, "learning rate")
		model.SetStore(g, trial)
		number := trial.VariableWithValue("number", float32(0)).NodeValue(g)
		d.optimizer.UpdateGraphWithGradients(trial.RootScope(), []*graph.Node{number}, number.DType())
	})
	if trial.GetVariable(rateName) != nil {
		return nil // Muon needs matrices and fails here
	}
	if err != nil {
		return fmt.Errorf("try the optimizer %v: %w", d.optimizer, err)
	}
	return fmt.Errorf("%w: the optimizer %v keeps none in the variable %s", ErrNoLearningRate, d.optimizer, rateName)
}

func (s *State) startAt(rate float64) error {
	if s.model.startRate == nil {
		if err := s.model.tryOptimizer(); err != nil {
			return err
		}
	}
	if v := s.model.store.GetVariable(rateName); v != nil { // of a step that did not compile
		t, err := rateTensor(rate, v.DType())
		if err == nil {
			err = v.SetValue(t)
		}
		if err != nil {
			return err
		}
	}
	s.model.startRate = &rate
	return nil
}

// start: only the optimizer knows the rate's dtype.
func (d *definition) start() {
	if d.startRate == nil {
		return
	}
	v := d.store.GetVariable(rateName)
	if v == nil {
		panic(fmt.Errorf("the learning rate was set to %g, but the optimizer %v made no variable %s", *d.startRate, d.optimizer, rateName))
	}
	t, err := rateTensor(*d.startRate, v.DType())
	if err == nil {
		err = v.SetValue(t) // until the device has a value
	}
	if err != nil {
		panic(fmt.Errorf("the learning rate was set to %g: %w", *d.startRate, err))
	}
}

func rateTensor(rate float64, dtype dtypes.DType) (*tensors.Tensor, error) {
	if !dtype.IsFloat() {
		return nil, fmt.Errorf("%s is %s, expected a floating-point number", rateName, dtype)
	}
	t, err := tensors.FromAnyValue(shapes.CastAsDType(rate, dtype))
	if err != nil {
		return nil, err
	}
	held, err := scalarOf(t)
	switch {
	case err == nil && math.IsInf(held, 0):
		err = fmt.Errorf("as %s it would be %g", dtype, held)
	case err == nil && held == 0 && rate != 0:
		err = fmt.Errorf("as %s it would be 0: %w", dtype, abilities.ErrRateTooSmall)
	}
	return t, err
}

func scalarOf(t *tensors.Tensor) (float64, error) {
	switch v := t.Value().(type) {
	case float64:
		return v, nil
	case float32:
		return float64(v), nil
	case interface{ Float32() float32 }:
		return float64(v.Float32()), nil
	}
	return 0, fmt.Errorf("%s is %s, expected a floating-point scalar", rateName, t.Shape())
}
