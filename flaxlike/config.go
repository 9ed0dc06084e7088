package flaxlike

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/nn"
)

type config struct {
	Layer    string                     `json:"layer"`
	Own      bool                       `json:"own,omitempty"`
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
	Layers   []config                   `json:"layers,omitempty"`
}

const (
	mostNested = 64
	mostLayers = 5000
)

func (c config) check() error {
	layers := 0
	var visit func(c config, depth int) error
	visit = func(c config, depth int) error {
		layers++
		switch {
		case depth > mostNested:
			return fmt.Errorf("layers are nested in each other %d deep or more, expected at most %d", depth, mostNested)
		case layers > mostLayers:
			return fmt.Errorf("there are more than %d layers", mostLayers)
		}
		for _, in := range c.Layers {
			if err := visit(in, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(c, 0)
}

type writing map[string]any

func (w writing) config(l nn.Layer, where string) (c config, err error) {
	if layering.IsNil(l) {
		return c, fmt.Errorf("the layer %q is nil", where)
	}
	c.Layer = layering.Kind(l)
	if builtIn(l) {
		l = reflect.Indirect(reflect.ValueOf(l)).Interface().(nn.Layer)
	} else {
		c.Own = true
		if err := w.own(c.Layer, l); err != nil {
			return c, fmt.Errorf("the layer %q %w", where, err)
		}
		if reflect.TypeOf(l).Kind() == reflect.Func {
			return c, nil
		}
	}
	if c.Settings, err = settingsOf(l); err != nil {
		return c, fmt.Errorf("the layer %q, %s, cannot be saved: %w", where, c.Layer, err)
	}
	held, _ := heldBy(l)
	for i, in := range held {
		at := fmt.Sprintf("%s/%d", where, i)
		switch n := l.(type) {
		case nn.Named:
			at = where + "/" + n.Name
		case nn.TimeDistributed:
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

func (w writing) own(name string, l nn.Layer) error {
	of := any(reflect.TypeOf(l))
	if v := reflect.ValueOf(l); v.Kind() == reflect.Func {
		full := runtime.FuncForPC(v.Pointer()).Name()
		if layering.Closure.MatchString(full) || strings.Contains(full, "[") {
			return errors.New("is an anonymous function: make it a named function of the package, or a type with settings and an Apply")
		}
		of = full
	} else if name == "" || strings.Contains(name, "[") {
		return fmt.Errorf("is a %T, a type without a name", l)
	}
	if other, ok := w[name]; ok && other != of {
		return fmt.Errorf("is a %v, and another one a %v: in a file both would be %q; give one another name", of, other, name)
	}
	w[name] = of
	return nil
}

var initializer = reflect.TypeFor[model.VariableInitializer]()

var bareSetting = map[reflect.Type]string{reflect.TypeFor[nn.Activation](): "Name", reflect.TypeFor[nn.Reshape](): "Dims"}

// settingsOf omits zero settings, and unnamed initializers, which a saved model does not need.
func settingsOf(l nn.Layer) (map[string]json.RawMessage, error) {
	v := reflect.Indirect(reflect.ValueOf(l))
	settings := map[string]json.RawMessage{}
	_, holds := heldBy(l)
	name, bare := bareSetting[v.Type()]
	switch {
	case bare:
		settings[name], _ = json.Marshal(l)
		return settings, nil
	case holds && v.Kind() == reflect.Slice:
		return settings, nil
	case v.Kind() != reflect.Struct:
		return nil, fmt.Errorf("it is a %T, expected a struct", l)
	}
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		switch {
		case value.IsZero(), holds && (f.Name == "Layer" || f.Name == "Layers"):
			continue
		case !f.IsExported():
			return nil, fmt.Errorf("its field %s is not exported", f.Name)
		case f.Type == initializer:
			if name := initializerName(value.Interface().(model.VariableInitializer)); name != "" {
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

func initializerName(i model.VariableInitializer) string {
	for _, name := range []string{"glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform", "orthogonal", "zeros", "ones"} {
		if reflect.ValueOf(nn.Initial(name)).Pointer() == reflect.ValueOf(i).Pointer() {
			return name
		}
	}
	return ""
}

func withSettings(of nn.Layer, settings map[string]json.RawMessage) (nn.Layer, error) {
	t := reflect.TypeOf(of)
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	v := reflect.New(t)
	if name, bare := bareSetting[t]; bare && len(settings) == 1 && settings[name] != nil {
		if err := json.Unmarshal(settings[name], v.Interface()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return v.Elem().Interface().(nn.Layer), nil
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		var f reflect.StructField
		ok := t.Kind() == reflect.Struct
		if ok {
			f, ok = t.FieldByName(name)
		}
		if !ok || !f.IsExported() || len(f.Index) != 1 {
			return nil, fmt.Errorf("it has a setting %s, which %v does not have", listed.Quoted(name), t)
		}
		to := v.Elem().FieldByIndex(f.Index).Addr().Interface()
		if f.Type == initializer {
			var called string
			if err := json.Unmarshal(settings[name], &called); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			*to.(*model.VariableInitializer) = nn.Initial(called)
			continue
		}
		if err := json.Unmarshal(settings[name], to); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if !pointer {
		v = v.Elem()
	}
	return v.Interface().(nn.Layer), nil
}

type reading struct {
	own   map[string]nn.Layer
	asked map[string]bool
}

func (r reading) layer(c config) (l nn.Layer, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("layer %s: %w", listed.Quoted(c.Layer), err)
		}
	}()
	of := kinds[c.Layer]
	switch {
	case c.Own:
		if of = r.own[c.Layer]; of == nil {
			return nil, fmt.Errorf("its code is in the program that saved the model, and the file has only its settings: give Open "+
				"WithLayer(%s, …), a value of its type or its function, or WithNetwork with the whole network", listed.Quoted(c.Layer))
		}
		r.asked[c.Layer] = true
		if isFunc := reflect.TypeOf(of).Kind() == reflect.Func; isFunc && len(c.Settings) == 0 {
			return of, nil
		} else if isFunc {
			return nil, errors.New("it has settings, and WithLayer has a function for it, expected a value of its type")
		}
	case of == nil:
		return nil, fmt.Errorf("%w: this version of lazo has no such layer", errUnknownName)
	}
	if l, err = withSettings(of, c.Settings); err != nil {
		return nil, err
	}
	_, holds := heldBy(l)
	if !holds && len(c.Layers) > 0 {
		return nil, errors.New("it contains layers, but its kind contains none")
	}
	if !holds {
		return l, nil
	}
	in := make([]nn.Layer, len(c.Layers))
	for i := range c.Layers {
		if in[i], err = r.layer(c.Layers[i]); err != nil {
			return nil, err
		}
	}
	return holding(l, in)
}

func (c config) lines(before []string, indent, place string) []string {
	line := c.Layer
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		line += fmt.Sprintf(" %s=%s", name, c.Settings[name])
	}
	if c.Own {
		line += " (own)"
	}
	before = append(before, indent+strings.TrimPrefix(place+" ", " ")+line)
	for i, in := range c.Layers {
		at := ""
		if slices.Contains([]string{"Sequential", "Residual", "L1", "L2", "WindowScale"}, c.Layer) {
			at = fmt.Sprint(i)
		}
		before = in.lines(before, indent+"  ", at)
	}
	return before
}

func layersOf(l nn.Layer, place string, all map[string]string) map[string]string {
	if layering.IsNil(l) || reflect.TypeOf(l).Kind() == reflect.Func {
		return all
	}
	noteLayer(all, place, l)
	held, _ := heldBy(l)
	for i, in := range held {
		at := fmt.Sprintf("%s/%d", place, i)
		switch of := l.(type) {
		case nn.Named:
			at = place + "/" + of.Name
		case nn.TimeDistributed:
			at = place
		}
		layersOf(in, strings.TrimPrefix(at, "/"), all)
	}
	return all
}

func noteLayer(all map[string]string, place string, l any) {
	text := layering.Kind(l)
	of, ok := reflect.Indirect(reflect.ValueOf(l)).Interface().(nn.Layer)
	if !ok {
		of, ok = l.(nn.Layer)
	}
	if ok {
		settings, _ := settingsOf(of)
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			if v := reflect.Indirect(reflect.ValueOf(of)); v.Kind() != reflect.Struct || v.FieldByName(name).Type() != initializer {
				text += fmt.Sprintf(" %s=%s", name, settings[name])
			}
		}
		if held, _ := heldBy(of); len(held) > 1 {
			text += fmt.Sprintf(" of %d layers", len(held))
		}
	}
	if before := all[place]; before != "" { // called again, or without a scope of its own
		text = before + "; " + text
	}
	if len(text) > 1000 {
		text = fmt.Sprintf("%s… (checksum %08x)", text[:100], crc32.ChecksumIEEE([]byte(text)))
	}
	all[place] = text
}
