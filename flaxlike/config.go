package flaxlike

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/nn"
)

// config is a layer as a file has it.
type config struct {
	Layer string `json:"layer"`
	// Own tells that the layer is of the program that saved it: a type with settings, or a function.
	Own      bool                       `json:"own,omitempty"`
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
	Layers   []config                   `json:"layers,omitempty"` // those in it
}

// holder is a layer with others in it.
type holder interface {
	Layer
	inner() []Layer
	holding(layers []Layer) (Layer, error)
}

func (s sequential) inner() []Layer                  { return s.layers }
func (sequential) holding(in []Layer) (Layer, error) { return sequential{in}, nil }
func (residual) holding(in []Layer) (Layer, error)   { return residual{sequential{in}}, nil }
func (n named) inner() []Layer                       { return []Layer{n.layer} }
func (d timeDistributed) inner() []Layer             { return []Layer{d.layer} }
func (n named) holding(in []Layer) (Layer, error)    { l, err := only(in); return named{n.Name, l}, err }
func (timeDistributed) holding(in []Layer) (Layer, error) {
	l, err := only(in)
	return timeDistributed{l}, err
}

func only(in []Layer) (Layer, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("it has %d layers in it, expected one", len(in))
	}
	return in[0], nil
}

// writing writes layers down. A name stands for one layer of the program's own alone.
type writing map[string]any

// config is a layer as it is written down; where says which it is in errors.
func (w writing) config(l Layer, where string) (c config, err error) {
	if isNil(l) {
		return c, fmt.Errorf("the layer %q is nil", where)
	}
	l = known(l)
	c.Layer = kindOf(l)
	of := l
	switch l := l.(type) {
	case part:
		of = l.Layer
	case sequential, named:
	default:
		c.Own = true
		if err := w.own(c.Layer, l); err != nil {
			return c, fmt.Errorf("the layer %q %w", where, err)
		}
		if reflect.TypeOf(l).Kind() == reflect.Func {
			return c, nil
		}
	}
	if c.Settings, err = settingsOf(of); err != nil {
		return c, fmt.Errorf("the layer %q, %s, cannot be written down: %w", where, c.Layer, err)
	}
	h, ok := of.(holder)
	if !ok {
		return c, nil
	}
	for i, in := range h.inner() {
		at := fmt.Sprintf("%s/%d", where, i)
		switch n := h.(type) {
		case named:
			at = where + "/" + n.Name
		case timeDistributed:
			at = where
		}
		one, err := w.config(in, strings.TrimPrefix(at, "/"))
		if err != nil {
			return c, err
		}
		c.Layers = append(c.Layers, one)
	}
	return c, nil
}

// own sees that a layer of the program's own has a name that is its alone.
func (w writing) own(name string, l Layer) error {
	of := any(reflect.TypeOf(l))
	if v := reflect.ValueOf(l); v.Kind() == reflect.Func {
		full := runtime.FuncForPC(v.Pointer()).Name()
		if closure.MatchString(full) || strings.Contains(full, "[") {
			return errors.New("is a function without a name of its own: make it a function of the package, or a type with settings and an Apply")
		}
		of = full
	} else if name == "" || strings.Contains(name, "[") {
		return fmt.Errorf("is a %T, a type without a name of its own", l)
	}
	if other, ok := w[name]; ok && other != of {
		return fmt.Errorf("is a %v, and another one a %v: in a file both would be %q; give one another name", of, other, name)
	}
	w[name] = of
	return nil
}

var initializer = reflect.TypeFor[nn.Initializer]()

// settingsOf are the settings of a layer that are not zero, each as JSON from which it can be made again. An
// initializer has its name, if it has one, else it is left out: what a file's model computes does not depend on it.
func settingsOf(l any) (map[string]json.RawMessage, error) {
	v := reflect.Indirect(reflect.ValueOf(l))
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("it is a %T, expected a struct", l)
	}
	_, holds := l.(holder)
	settings := map[string]json.RawMessage{}
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		switch {
		case value.IsZero(), holds && !f.IsExported():
			continue
		case !f.IsExported():
			return nil, fmt.Errorf("its field %s is not exported", f.Name)
		case f.Type == initializer:
			if name := initializerName(value.Interface().(nn.Initializer)); name != "" {
				settings[f.Name], _ = json.Marshal(name)
			}
			continue
		case f.Type == reflect.TypeFor[*graph.Node](), f.Type == reflect.TypeFor[[]*graph.Node]():
			return nil, fmt.Errorf("its %s is a value of a graph", f.Name)
		}
		text, err := json.Marshal(value.Interface())
		if err != nil {
			return nil, fmt.Errorf("its %s: %w", f.Name, err)
		}
		again := reflect.New(f.Type)
		if err := json.Unmarshal(text, again.Interface()); err != nil {
			return nil, fmt.Errorf("its %s, read again: %w", f.Name, err)
		}
		if !reflect.DeepEqual(again.Elem().Interface(), value.Interface()) {
			return nil, fmt.Errorf("its %s, a %v, is not the same when its JSON is read again", f.Name, f.Type)
		}
		settings[f.Name] = text
	}
	return settings, nil
}

// initializerName is the name of one of package nn that has no number of its own.
func initializerName(i nn.Initializer) string {
	for _, name := range []string{"glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform", "orthogonal", "zeros", "ones"} {
		of, err := nn.InitializerNamed(name)
		if err == nil && reflect.ValueOf(of).Pointer() == reflect.ValueOf(i).Pointer() {
			return name
		}
	}
	return ""
}

// withSettings is a layer of the type of another one, with settings of a file.
func withSettings(of Layer, settings map[string]json.RawMessage) (Layer, error) {
	t := reflect.TypeOf(of)
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	v := reflect.New(t)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		var f reflect.StructField
		ok := t.Kind() == reflect.Struct
		if ok {
			f, ok = t.FieldByName(name)
		}
		if !ok || !f.IsExported() || len(f.Index) != 1 {
			return nil, fmt.Errorf("it has a setting %q, which %v has not", name, t)
		}
		to := v.Elem().FieldByIndex(f.Index).Addr().Interface()
		if f.Type == initializer {
			var called string
			if err := json.Unmarshal(settings[name], &called); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			i, err := nn.InitializerNamed(called)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			*to.(*nn.Initializer) = i
			continue
		}
		if err := json.Unmarshal(settings[name], to); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if !pointer {
		v = v.Elem()
	}
	return v.Interface().(Layer), nil
}

// reading makes layers of what is written down: own are those of the program by name, and those that were asked for.
type reading struct {
	own   map[string]Layer
	asked map[string]bool
}

func (r reading) layer(c config) (l Layer, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("layer %q: %w", c.Layer, err)
		}
	}()
	of, builtIn := parts[c.Layer]
	switch {
	case c.Own:
		if of = r.own[c.Layer]; of == nil {
			return nil, fmt.Errorf("it is of the program that saved the model, and the file has its settings alone: give Open "+
				"WithLayer(%q, …), a value of its type or its function, or WithNetwork with the whole network", c.Layer)
		}
		r.asked[c.Layer] = true
		if isFunc := reflect.TypeOf(of).Kind() == reflect.Func; isFunc && len(c.Settings) == 0 {
			return of, nil
		} else if isFunc {
			return nil, errors.New("it has settings, and WithLayer has a function for it, expected a value of its type")
		}
	case c.Layer == "Sequential":
		of = sequential{}
	case c.Layer == "Named":
		of = named{}
	case !builtIn:
		return nil, fmt.Errorf("%w: this version of lazo has no such layer", ErrUnknownName)
	}
	if l, err = withSettings(of, c.Settings); err != nil {
		return nil, err
	}
	h, holds := l.(holder)
	if !holds && len(c.Layers) > 0 {
		return nil, errors.New("it has layers in it, and its kind has none")
	}
	if holds {
		in := make([]Layer, len(c.Layers))
		for i := range c.Layers {
			if in[i], err = r.layer(c.Layers[i]); err != nil {
				return nil, err
			}
		}
		if l, err = h.holding(in); err != nil {
			return nil, err
		}
	}
	if builtIn && !c.Own {
		l = part{Layer: l, kind: c.Layer}
	}
	return l, nil
}

// closure is the end of the name of a function that has none of its own.
var closure = regexp.MustCompile(`(\.func\d+|\.\d+|-fm)+$`)
