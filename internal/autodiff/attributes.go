package autodiff

import (
	"fmt"
	"reflect"

	"github.com/gomlx/gomlx/core/graph"
)

// attributes are a node's static parameters, like axes, read by reflection: GoMLX v0.28.8 has no accessor.
// TestAttributes fails if a field changes.
type attributes struct {
	node   *graph.Node
	inputs reflect.Value
}

func attributesOf(node *graph.Node) attributes {
	a := attributes{node: node}
	if field := reflect.ValueOf(node).Elem().FieldByName("inputs"); field.Kind() == reflect.Interface {
		a.inputs = reflect.Indirect(field.Elem())
	}
	if a.inputs.Kind() != reflect.Struct {
		panic(a.unknown("inputs", "a struct", a.inputs))
	}
	return a
}

func (a attributes) unknown(name, want string, got reflect.Value) error {
	found := "no such field"
	if got.IsValid() {
		found = got.Type().String()
	}
	return fmt.Errorf("autodiff: field %q of GoMLX's %v node: expected %s, got %s: this is not GoMLX v0.28.8, use that version",
		name, a.node.Type(), want, found)
}

func (a attributes) field(name string, kind reflect.Kind) reflect.Value {
	f := a.inputs.FieldByName(name)
	if f.Kind() != kind {
		panic(a.unknown(name, kind.String(), f))
	}
	return f
}

func (a attributes) int(name string) int {
	return int(a.field(name, reflect.Int).Int())
}

func (a attributes) ints(name string) []int {
	f := a.field(name, reflect.Slice)
	if f.Type().Elem().Kind() != reflect.Int {
		panic(a.unknown(name, "[]int", f))
	}
	var values []int
	for i := range f.Len() {
		values = append(values, int(f.Index(i).Int()))
	}
	return values
}

func (a attributes) pairs(name string) [][2]int {
	f := a.field(name, reflect.Slice)
	if f.Type().Elem() != reflect.TypeFor[[2]int]() {
		panic(a.unknown(name, "[][2]int", f))
	}
	var values [][2]int
	for i := range f.Len() {
		pair := f.Index(i)
		values = append(values, [2]int{int(pair.Index(0).Int()), int(pair.Index(1).Int())})
	}
	return values
}

func (a attributes) sub(name string) attributes {
	return attributes{node: a.node, inputs: a.field(name, reflect.Struct)}
}

func (a attributes) function(name string) *graph.Function {
	f := a.field(name, reflect.Pointer)
	if f.Type() != reflect.TypeFor[*graph.Function]() {
		panic(a.unknown(name, "*Function", f))
	}
	return (*graph.Function)(f.UnsafePointer())
}
