package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrValues: what [WithValues] gave does not fit what a step brought in.
var ErrValues = errors.New("the given values do not fit the model")

// WithValues gives the state values, by the full names of their variables ("/dense/weights"): parameters of somebody
// else's training, say, or all that [State.Value] reads of another state, the optimizer's and the random state too. A
// variable gets its value when the first step brings it in, and no random one is drawn for it. The tensors stay the
// caller's and must not change until then.
//
// Each trainable variable must be among them ([DrawMissing] makes exceptions) and each value must have its variable's
// shape and dtype: else the step fails with an error that names all that do not fit and wraps [ErrValues], and changes
// nothing. Values that no step asks for are not used, as those of the optimizer in a state that only tests.
func WithValues(values map[string]*Tensor) Option {
	return func(s *State) error {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if t := values[name]; t == nil || !strings.HasPrefix(name, "/") {
				return fmt.Errorf("value %q: expected a tensor and a full name such as \"/dense/weights\"", name)
			}
		}
		s.model.given = make(map[string]*Tensor, len(values))
		maps.Copy(s.model.given, values)
		return nil
	}
}

// DrawMissing has those trainable variables drawn at random whose full names match, although [WithValues] does not give
// them: a new last layer on given ones.
func DrawMissing(match func(name string) bool) Option {
	return func(s *State) error { s.model.mayDraw = match; return nil }
}

// give hands the given values to the variables that a step brought in, all or none.
func (d *definition) give(fresh []*variable) error {
	if d.given == nil {
		return nil
	}
	var wrong []string
	unused := maps.Clone(d.given)
	for _, v := range fresh {
		name := v.Path()
		t, given := d.given[name]
		delete(unused, name)
		switch {
		case given && !t.Shape().Equal(v.Shape()):
			wrong = append(wrong, fmt.Sprintf("%s is %s, expected %s", name, t.Shape(), v.Shape()))
		case !given && v.Trainable && (d.mayDraw == nil || !d.mayDraw(name)):
			wrong = append(wrong, fmt.Sprintf("%s %s is missing", name, v.Shape()))
		}
	}
	if len(wrong) > 0 {
		left := ""
		if len(unused) > 0 {
			left = fmt.Sprintf("; given, but not in the model so far: %s", strings.Join(slices.Sorted(maps.Keys(unused)), ", "))
		}
		return fmt.Errorf("%w: %s%s", ErrValues, strings.Join(wrong, "; "), left)
	}
	for _, v := range fresh {
		t, given := d.given[v.Path()]
		if !given {
			continue
		}
		clone, err := t, error(nil)
		if d.late[t] == nil { // else it is read when it is moved
			clone, err = t.LocalClone()
		}
		if err == nil {
			err = v.SetValuePreservingOld(clone)
		}
		if err != nil {
			return fmt.Errorf("the given value of %s: %w", v.Path(), err)
		}
	}
	return nil
}

// taken frees the host's copies of values that are on the device now.
func (d *definition) taken(fresh []*variable) error {
	var errs []error
	for _, v := range fresh {
		if _, given := d.given[v.Path()]; given {
			delete(d.given, v.Path())
			errs = append(errs, empty(v))
		}
	}
	return errors.Join(errs...)
}

// SetValue gives a variable another value, by its full name, when the steps that were begun are over; nothing is
// compiled again. The tensor must have the variable's shape and dtype, is copied and stays the caller's. A state has
// variables from its first step on, or from [Stepper.Prepare]; before it, there is [WithValues].
func (s *State) SetValue(name string, t *Tensor) error {
	if err := s.setValue(name, t); err != nil {
		return fmt.Errorf("managed: set %q: %w", name, err)
	}
	return nil
}

func (s *State) setValue(name string, t *Tensor) error {
	done, err := s.access.changeAll(context.Background())
	if err != nil {
		return err
	}
	defer done()
	if err := s.storage.last.settled(); err != nil {
		return err
	}
	at := s.storage.at(name)
	switch {
	case t == nil:
		return errors.New("the tensor is nil")
	case at < 0 && len(s.storage.values) == 0:
		return errors.New("the state has no variables before its first step: use WithValues, or Prepare the step")
	case at < 0:
		return fmt.Errorf("there is no such variable; there are %q", s.storage.names())
	case !t.Shape().Equal(s.storage.values[at].shape):
		return fmt.Errorf("the tensor is %s, expected %s", t.Shape(), s.storage.values[at].shape)
	}
	clone, err := t.LocalClone()
	if err != nil {
		return err
	}
	return s.storage.set(at, clone)
}
