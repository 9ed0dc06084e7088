package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/lazo-ml/lazo/internal/listed"
)

// Exact reads one JSON value as encoding/json does, and refuses what that overlooks: a field's name in another case, a
// name twice, null for a non-pointer value (but with the tag exact:"null"), and a missing field with the tag
// exact:"required". Types with an UnmarshalJSON check themselves. With known, unknown names are errors.
func Exact(text []byte, to any, known bool) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if known {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(to); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("%d bytes follow it", len(rest))
	}
	w := walk{text: text}
	return w.value(reflect.TypeOf(to).Elem(), "it")
}

type walk struct {
	text []byte
	at   int
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (w *walk) value(t reflect.Type, what string) error {
	null := w.next() == 'n'
	if reflect.PointerTo(t).Implements(unmarshaler) || null && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface) {
		w.skip()
		return nil
	}
	if t.Kind() == reflect.Pointer {
		return w.value(t.Elem(), what)
	}
	if null {
		return fmt.Errorf("%s is null, expected a value", what)
	}
	switch t.Kind() {
	case reflect.Struct:
		return w.object(t, what)
	case reflect.Map:
		return w.members(func(name string) error { return w.value(t.Elem(), listed.Quoted(name)) })
	case reflect.Slice, reflect.Array:
		for w.at++; w.next() != ']'; w.comma() {
			if err := w.value(t.Elem(), "an element of "+what); err != nil {
				return err
			}
		}
		w.at++
		return nil
	}
	w.skip()
	return nil
}

func (w *walk) object(t reflect.Type, what string) error {
	fields, seen := map[string]reflect.StructField{}, map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f
		}
	}
	err := w.members(func(name string) error {
		f, ok := fields[name]
		if !ok {
			for exact := range fields {
				if strings.EqualFold(exact, name) {
					return fmt.Errorf("%s has the name %s, expected %q exactly", what, listed.Quoted(name), exact)
				}
			}
			w.skip()
			return nil
		}
		if seen[name] {
			return fmt.Errorf("%s has %q twice", what, name)
		}
		if seen[name] = true; w.next() == 'n' && f.Tag.Get("exact") == "null" {
			w.skip()
			return nil
		}
		return w.value(f.Type, fmt.Sprintf("%q", name))
	})
	if err != nil {
		return err
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Tag.Get("exact") == "required" && !seen[name] {
			return fmt.Errorf("%s lacks %q", what, name)
		}
	}
	return nil
}

func (w *walk) members(each func(name string) error) error {
	for w.at++; w.next() != '}'; w.comma() {
		from := w.at
		w.skip()
		name := string(w.text[from+1 : w.at-1])
		if strings.Contains(name, `\`) {
			_ = json.Unmarshal(w.text[from:w.at], &name) // the decoder has read it
		}
		w.next()
		w.at++
		if err := each(name); err != nil {
			return err
		}
	}
	w.at++
	return nil
}

func (w *walk) next() byte {
	for w.text[w.at] <= ' ' {
		w.at++
	}
	return w.text[w.at]
}

func (w *walk) comma() {
	if w.next() == ',' {
		w.at++
	}
}

func (w *walk) skip() {
	w.next()
	for depth := 0; w.at < len(w.text); {
		switch c := w.text[w.at]; c {
		case '"':
			for w.at++; w.text[w.at] != '"'; w.at++ {
				if w.text[w.at] == '\\' {
					w.at++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		w.at++
		if depth > 0 {
			continue
		}
		if w.at == len(w.text) || depth < 0 || strings.IndexByte(",:]} \t\r\n", w.text[w.at]) >= 0 {
			return
		}
	}
}
