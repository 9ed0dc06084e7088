package flaxlike

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/nn"
)

// WithNetwork sets the network for [Open] if the file has none, as for code without a name.
func WithNetwork(network nn.Layer) Option {
	return func(s *settings) error {
		if layering.IsNil(network) {
			return errNoNetwork
		}
		s.network = network
		return nil
	}
}

// WithLayer sets a custom layer for [Open] by its name in the file: of its type, or of the function of an nn.Func or a
// [Functional]. A type's settings come from the file.
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

// WithClasses names the classes in number order, for the only output or for outputs by name. They may translate the
// names in [WithPreparation] or the file of [Open]; another order or number is an error. Without it, the first Fit
// takes the Classes of its set's labels. Labels of a later set with Classes are numbered by name.
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

// WithPreparation makes the preparation of tables a part of the model and its file. The model's methods then take
// tables as they were read. Labels name their classes, unless [WithClasses] does. For [Open], p must equal the
// file's. p is kept.
func WithPreparation(p *tables.Preparation) Option {
	return func(s *settings) error {
		if _, err := json.Marshal(p); err != nil || p == nil {
			return errors.New("WithPreparation: it is nil or the zero value: make one with tables.Fit, or read it from JSON")
		}
		s.preparation = p
		return checkOrdered(p)
	}
}

func checkOrdered(p *tables.Preparation) error {
	if columns := p.Ordered(); columns != nil {
		return fmt.Errorf("WithPreparation: %q is filled from the rows before, so answers would depend on the batch: take another Fill, windows of a "+
			"series, or fill the table by a preparation of its own before", columns)
	}
	return nil
}

// WithClock saves the time by this clock, like time.Now, with the model. Without it, two saves are bit-identical.
func WithClock(now func() time.Time) Option {
	return func(s *settings) error { s.clock = now; return nil }
}

func (s *settings) nameClasses() error {
	for _, l := range s.losses {
		field := cmp.Or(l.Label, l.Output, "y")
		if s.classes[l.Output] != nil {
			if err := s.checkOrder(s.classes[l.Output], field); err != nil {
				return err
			}
			continue
		}
		if s.classes[""] != nil {
			continue
		}
		names, err := s.preparation.Classes(field)
		if err != nil {
			continue
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

const ofPreparation = "the labels of the preparation have"

func (s *settings) numbers(output string) bool {
	return slices.ContainsFunc(append(slices.Clip(s.losses), Loss{Output: output}), func(l Loss) bool {
		_, err := s.preparation.Classes(cmp.Or(l.Label, l.Output, "y"))
		return err == nil && (output == "" || l.Output == output)
	})
}

func moved(own, given []string) int {
	for at, name := range given {
		if slices.Contains(own, name) && (at >= len(own) || own[at] != name) {
			return at
		}
	}
	return -1
}

func (s *settings) checkOrder(given []string, field string) error {
	own, err := s.preparation.Classes(field)
	if err != nil || slices.Equal(own, given) {
		return nil
	}
	by, hint := "WithClasses", "leave WithClasses out, or give it the names in the preparation's order"
	if s.named != "" {
		by, hint = "the file", "give Open WithClasses with the names in the preparation's order"
	}
	if len(own) != len(given) {
		return fmt.Errorf("%s names %d classes, and field %q of the preparation has %d: their numbers are those that the model is trained on\n  %s",
			by, len(given), field, len(own), hint)
	}
	at := moved(own, given)
	if at < 0 {
		return nil
	}
	return fmt.Errorf("%s has the names of the classes in another order than field %q of the preparation: class %d is %q by %s, and %q by the "+
		"preparation, whose numbers the model is trained on\n  %s", by, field, at, given[at], by, own[at], hint)
}
