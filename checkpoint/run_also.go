package checkpoint

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
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
	if _, is := numbersIn(v); is && err == nil {
		return nil
	}
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
		if err := c.also(name, reflect.New(reflect.TypeOf(also[name]).Elem())); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(also) {
		blank(reflect.ValueOf(also[name]))
		if err := c.also(name, reflect.ValueOf(also[name])); err != nil {
			return err
		}
	}
	c.Tensors = slices.DeleteFunc(c.Tensors, func(t Tensor) bool { return strings.HasPrefix(t.Name, alsoTensor) })
	return nil
}

func (c *Checkpoint) also(name string, into reflect.Value) error {
	t, ok := c.Tensor(alsoTensor + name)
	if !ok { // slices of earlier checkpoints are JSON
		return c.Section(name, into.Interface())
	}
	dtype, is := numbersIn(into)
	if !is || dtype != t.DType || len(t.Dims) != 1 {
		return fmt.Errorf("option Also %q: the value is a %s, and the checkpoint has %s %v in binary", name, into.Type().Elem(), t.DType, t.Dims)
	}
	if t.Dims[0] == 0 {
		return nil
	}
	read := reflect.MakeSlice(into.Type().Elem(), t.Dims[0], t.Dims[0])
	if _, err := binary.Decode(t.Data, binary.LittleEndian, read.Interface()); err != nil {
		return fmt.Errorf("option Also %q: %w", name, err)
	}
	into.Elem().Set(read)
	return nil
}

const alsoTensor = "loop.also."

var inBinary = map[reflect.Type]safetensors.DType{
	reflect.TypeFor[bool](): safetensors.Bool,
	reflect.TypeFor[int8](): safetensors.I8, reflect.TypeFor[uint8](): safetensors.U8,
	reflect.TypeFor[int16](): safetensors.I16, reflect.TypeFor[uint16](): safetensors.U16,
	reflect.TypeFor[int32](): safetensors.I32, reflect.TypeFor[uint32](): safetensors.U32,
	reflect.TypeFor[int64](): safetensors.I64, reflect.TypeFor[uint64](): safetensors.U64,
	reflect.TypeFor[float32](): safetensors.F32, reflect.TypeFor[float64](): safetensors.F64,
}

// numbersIn returns the dtype of a pointer to a slice that is saved in binary.
func numbersIn(pointer reflect.Value) (dtype safetensors.DType, ok bool) {
	t := pointer.Type().Elem()
	if t.Kind() != reflect.Slice || byItself(t) {
		return 0, false
	}
	dtype, ok = inBinary[t.Elem()]
	return dtype, ok
}

// numbersTensor copies the slice: a save is written while the program continues.
func numbersTensor(name string, dtype safetensors.DType, pointer any) (Tensor, error) {
	data, err := binary.Append(nil, binary.LittleEndian, reflect.ValueOf(pointer).Elem().Interface())
	if err != nil {
		return Tensor{}, fmt.Errorf("checkpoint: option Also %q: %w", name, err)
	}
	return Tensor{Name: alsoTensor + name, DType: dtype, Dims: []int{reflect.ValueOf(pointer).Elem().Len()}, Data: data}, nil
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
