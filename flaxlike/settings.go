package flaxlike

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/nn"
)

// Settings adds the model's settings that change what it learns: losses, weights and layers. Layers within a network's
// code are known after the first training step is built.
func (s modelState) Settings() []checkpoint.Setting {
	of := &s.m.set
	all := s.m.state.Settings()
	add := func(name, value string) {
		all = append(all, checkpoint.Setting{Name: name, Value: cmp.Or(value, "none")})
	}
	losses := said(judgesOf(of.losses))
	if of.innerLosses {
		losses = append(losses, lossesInside)
	}
	add("loss", strings.Join(losses, "; "))
	var classes []string
	for _, class := range slices.Sorted(maps.Keys(of.classWeights)) {
		if w := of.classWeights[class]; w != 1 {
			classes = append(classes, fmt.Sprintf("%d: %g", class, w))
		}
	}
	add("weights of classes", strings.Join(classes, ", "))
	add("weights of examples", strings.TrimSuffix(fmt.Sprintf("field %q", of.weights), `field ""`))
	layers := layersOf(s.m.network, "", map[string]string{})
	s.m.seen.mu.Lock()
	coded := s.m.seen.settings
	s.m.seen.mu.Unlock()
	for place, text := range coded {
		if _, known := layers[place]; !known {
			layers[place] = text
		}
	}
	for _, place := range slices.Sorted(maps.Keys(layers)) {
		name := "layer " + place
		if place == "" {
			name = "network"
		}
		add(name, layers[place])
	}
	return all
}

func layersOf(l nn.Layer, place string, all map[string]string) map[string]string {
	if layering.IsNil(l) || reflect.TypeOf(l).Kind() == reflect.Func {
		return all
	}
	note(all, place, l)
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

// note adds a layer's kind and its settings, if JSON can encode them, without initializers, which change no resumed
// run.
func note(all map[string]string, place string, l any) {
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
