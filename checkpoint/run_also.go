package checkpoint

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

var ownSections = []string{loopSection, versionsSection, settingsSection, endedSection, sameSection}

func checkAlso(name string, x any) error {
	v := reflect.ValueOf(x)
	switch {
	case v.Kind() != reflect.Pointer || v.IsNil():
		return fmt.Errorf("option Also %q: expected a pointer to the value to save and restore, got %T", name, x)
	case slices.Contains(ownSections, name):
		return fmt.Errorf("option Also %q: the section is the run's own; use another name", name)
	}
	err := checkName(name)
	if err == nil {
		err = unsaved(v.Type().Elem(), v.Type().Elem().String(), map[reflect.Type]bool{})
	}
	if err == nil {
		_, err = encodeSection(x)
	}
	if err != nil {
		return fmt.Errorf("option Also %q: %w", name, err)
	}
	return nil
}

var jsonTypes = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

func byItself(t reflect.Type) bool {
	return slices.ContainsFunc(jsonTypes, func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) })
}

func unsaved(t reflect.Type, at string, seen map[reflect.Type]bool) error {
	if seen[t] || byItself(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return unsaved(t.Elem(), at, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("json") == "-" {
				continue
			}
			if !f.IsExported() && !embeds(f) {
				return fmt.Errorf("JSON leaves out %s.%s: export the field, give the type the methods MarshalJSON and UnmarshalJSON, or mark the field `json:\"-\"` if it need not be restored",
					at, f.Name)
			}
			if err := unsaved(f.Type, at+"."+f.Name, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func embeds(f reflect.StructField) bool { return f.Anonymous && f.Type.Kind() == reflect.Struct }

// Decoding would merge with old values.
func blank(v reflect.Value) {
	switch {
	case byItself(v.Type()):
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			blank(v.Elem())
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Tag.Get("json") != "-" && (f.IsExported() || embeds(f)) {
				blank(v.Field(i))
			}
		}
	case v.CanSet():
		v.SetZero()
	}
}

func (c *Checkpoint) restoreAlso(also map[string]any) error {
	for _, name := range sortedKeys(also) {
		if err := c.Section(name, reflect.New(reflect.TypeOf(also[name]).Elem()).Interface()); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(also) {
		blank(reflect.ValueOf(also[name]))
		if err := c.Section(name, also[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkSame(x any) error {
	if x == nil {
		return nil
	}
	t := reflect.TypeOf(x)
	if err := unsaved(t, strings.TrimPrefix(t.String(), "*"), map[reflect.Type]bool{}); err != nil {
		return fmt.Errorf("option Same: %w", err)
	}
	return nil
}
