package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/internal/packs"
	"github.com/lazo-ml/lazo/managed/internal/store"
)

// ErrValues: what [WithValues] gave does not fit what a step brought in.
var ErrValues = store.ErrValues

// WithValues gives the state values, by the full names of their variables ("/dense/weights"): parameters of somebody
// else's training, say, or all that [State.Value] reads of another state, the optimizer's and the random state too. A
// variable gets its value when the first step brings it in, and no random one is drawn for it. The tensors stay the
// caller's and must not change until then.
//
// Each trainable variable must be among them ([DrawMissing] makes exceptions) and each value must have its variable's
// shape and dtype: else the step fails with an error that names all that do not fit and wraps [ErrValues], and changes
// nothing. Values that no step asks for are not used, as those of the optimizer in a state that only tests.
func WithValues(values map[string]*tensors.Tensor) Option {
	return func(s *State) error {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if t := values[name]; t == nil || !strings.HasPrefix(name, "/") {
				return fmt.Errorf("value %q: expected a tensor and a full name such as \"/dense/weights\"", name)
			}
		}
		s.model.given.Tensors = make(map[string]*tensors.Tensor, len(values))
		maps.Copy(s.model.given.Tensors, values)
		return nil
	}
}

// DrawMissing has those trainable variables drawn at random whose full names match, although [WithValues] does not give
// them: a new last layer on given ones.
func DrawMissing(match func(name string) bool) Option {
	return func(s *State) error { s.model.given.MayDraw = match; return nil }
}

// SetValue gives a variable another value, by its full name, when the steps that were begun are over; nothing is
// compiled again. The tensor must have the variable's shape and dtype, is copied and stays the caller's. A state has
// variables from its first step on, or from [Stepper.Prepare]; before it, there is [WithValues].
func (s *State) SetValue(name string, t *tensors.Tensor) error {
	if err := s.setValue(name, t); err != nil {
		return fmt.Errorf("managed: set %q: %w", name, err)
	}
	return nil
}

func (s *State) setValue(name string, t *tensors.Tensor) error {
	done, err := s.values.Change(context.Background())
	if err != nil {
		return err
	}
	defer done()
	at, element := s.values.Find(name)
	switch {
	case t == nil:
		return errors.New("the tensor is nil")
	case at < 0 && s.values.Len() == 0:
		return errors.New("the state has no variables before its first step: use WithValues, or Prepare the step")
	case at < 0:
		return fmt.Errorf("there is no such variable; there are %q", s.values.Names())
	}
	expected := s.values.Shape(at)
	if element >= 0 {
		expected = shapes.Make(expected.DType)
	}
	if !t.Shape().Equal(expected) {
		return fmt.Errorf("the tensor is %s, expected %s", t.Shape(), expected)
	}
	var clone *tensors.Tensor
	if element < 0 {
		clone, err = t.LocalClone()
	} else if clone, err = s.values.Fetch(at); err == nil {
		err = setElement(clone, element, t)
		packs.SetApart(s.model.store, s.values.Variable(at).Path())
		s.values.NotePacks(s.model.store)
	}
	if err != nil {
		return err
	}
	return s.values.Set(at, clone)
}
