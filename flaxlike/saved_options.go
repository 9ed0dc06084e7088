package flaxlike

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/nn"
)

// WithNetwork gives [Open] the network, in place of that of the file: where the file has none, because it is code that
// has no name.
func WithNetwork(network nn.Layer) Option {
	return func(s *settings) error {
		if layering.IsNil(network) {
			return errNoNetwork
		}
		s.network = network
		return nil
	}
}

// WithLayer gives [Open] a layer of the program's own under the name that the file has for it: that of its type, or of
// the function of an nn.Func or a [Functional]. Of a type with settings any value will do, since the file has these.
func WithLayer(name string, layer nn.Layer) Option {
	return func(s *settings) error {
		if name == "" || layering.IsNil(layer) {
			return fmt.Errorf("WithLayer %q: expected a name and a layer", name)
		}
		if s.layers[name] != nil {
			return fmt.Errorf("WithLayer %q: given twice", name)
		}
		if s.layers == nil {
			s.layers = map[string]nn.Layer{}
		}
		s.layers[name] = layer
		return nil
	}
}

// WithClasses names the classes in the order of their numbers: those of the model's only output, or of outputs by name.
// Where [WithPreparation] numbers the classes, other names of them are allowed, as a translation; another number of
// names is an error, and so are the preparation's names in another order.
func WithClasses[C []string | map[string][]string](classes C) Option {
	all, several := any(classes).(map[string][]string)
	if !several {
		all = map[string][]string{"": any(classes).([]string)}
	}
	return func(s *settings) error {
		if s.classes == nil {
			s.classes = map[string][]string{}
		}
		for output, names := range all {
			if len(names) < 2 {
				return fmt.Errorf("the classes %q, expected at least two", names)
			}
			s.classes[output] = slices.Clone(names)
		}
		return nil
	}
}

// WithPreparation has [Model.Save] keep what makes the model's fields of other data, fitted on the training set: any
// value that JSON can have. [Model.Describe] reads it. Where it has a method Classes of a field's name, which gives
// those of the labels or an error, the classes have their names from it, unless [WithClasses] gives others.
//
// Given to [Open], it must be the one in the file, if that has one: the weights were trained on its fields.
func WithPreparation(p any) Option {
	text, err := json.Marshal(p)
	return func(s *settings) error {
		if err == nil && (p == nil || string(text) == "null") {
			err = errors.New("it is nil")
		}
		if err != nil {
			return fmt.Errorf("the preparation: %w", err)
		}
		s.preparation = text
		s.namesClasses, _ = p.(namesClasses)
		return nil
	}
}

// namesClasses is a preparation that knows the classes of a field of labels.
type namesClasses interface {
	Classes(field string) ([]string, error)
}

// nameClasses takes the names of classes of the preparation, for outputs that have none. Names that are given are to be
// in its order.
func (s *settings) nameClasses() error {
	for _, l := range s.losses {
		if s.namesClasses == nil {
			return nil
		}
		field := cmp.Or(l.Label, l.Output, "y")
		if s.classes[l.Output] != nil {
			if err := s.checkOrder(s.classes[l.Output], field); err != nil {
				return err
			}
			continue
		}
		if s.classes[""] != nil { // of the only output, whatever its name is
			continue
		}
		names, err := s.namesClasses.Classes(field)
		if err != nil {
			continue // its labels are no classes
		}
		if s.classes == nil {
			s.named = ofPreparation
		}
		if err := WithClasses(map[string][]string{l.Output: names})(s); err != nil {
			return err
		}
	}
	return nil
}

// ofPreparation says whose the names of classes are.
const ofPreparation = "the labels of the preparation have"

// checkOrder refuses names of classes that the preparation has in another order, or of which it has another number: its
// numbers of classes are those that are trained on.
func (s *settings) checkOrder(given []string, field string) error {
	if s.namesClasses == nil {
		return nil
	}
	own, err := s.namesClasses.Classes(field)
	if err != nil || slices.Equal(own, given) {
		return nil // its labels are no classes
	}
	by, hint := "WithClasses", "leave WithClasses out, or give it the names in the preparation's order"
	if s.named != "" {
		by, hint = "the file", "give Open WithClasses with the names in the preparation's order"
	}
	if len(own) != len(given) {
		return fmt.Errorf("%s names %d classes, and field %q of the preparation has %d: their numbers are those that the model is trained on\n  %s",
			by, len(given), field, len(own), hint)
	}
	if !slices.Equal(slices.Sorted(slices.Values(own)), slices.Sorted(slices.Values(given))) {
		return nil
	}
	at := 0
	for own[at] == given[at] {
		at++
	}
	return fmt.Errorf("%s has the names of the classes in another order than field %q of the preparation: class %d is %q by %s, and %q by the "+
		"preparation, whose numbers the model is trained on\n  %s", by, field, at, given[at], by, own[at], hint)
}

// WithClock has [Model.Save] write down the time by this clock, as time.Now. Without it a file has no time in it, so
// that two saves of one model are the same to the last bit.
func WithClock(now func() time.Time) Option {
	return func(s *settings) error { s.clock = now; return nil }
}
