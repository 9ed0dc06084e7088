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

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/packs"
	"github.com/lazo-ml/lazo/managed/internal/store"
)

// WithValues sets initial values by full names ("/dense/weights"), like pretrained parameters, or all values of another
// state. A variable takes its value when a step creates it. The tensors must not change until then. A checkpoint.Tensor
// with a Write is read only then, one variable after another.
//
// Each trainable variable must be listed, except for [DrawMissing], with its shape and dtype, else the step returns
// an error with all differences. Unused values are ignored.
func WithValues[T *tensors.Tensor | checkpoint.Tensor](values map[string]T) Option {
	return func(s *State) error {
		initial, late := make(map[string]*tensors.Tensor, len(values)), store.Late{}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			t, err := initialOf(values[name], late)
			if err != nil {
				return fmt.Errorf("value %q: %w", name, err)
			}
			if t == nil || !strings.HasPrefix(name, "/") {
				return fmt.Errorf("value %q: expected a tensor and a full name such as \"/dense/weights\"", name)
			}
			initial[name] = t
		}
		s.model.given.Initial, s.model.given.Late = initial, late
		return nil
	}
}

func initialOf(value any, late store.Late) (*tensors.Tensor, error) {
	of, saved := value.(checkpoint.Tensor)
	if !saved {
		return value.(*tensors.Tensor), nil
	}
	dtype, err := outOfFile(of.DType)
	if err != nil {
		return nil, err
	}
	return late.FromFile(of, dtype)
}

// DrawMissing allows drawing matching trainable variables that [WithValues] lacks, like a new last layer.
func DrawMissing(match func(name string) bool) Option {
	return func(s *State) error { s.model.given.MayDraw = match; return nil }
}

// SetValue waits for started steps and sets a variable of this full name to a copy of t, of its shape and dtype,
// without compiling. Variables exist from the first step or [Stepper.Prepare] on; before, use [WithValues].
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
