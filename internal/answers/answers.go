// Package answers writes a model's answers row by row, for the command and the server.
package answers

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// Column has an answer of each row: one value of JSON, or CSV cells below its header.
type Column struct {
	Name   string
	Header []string
	JSON   func(row int) any
	Cells  func(row int) []any
}

// Columns returns the columns of a model's answers (flaxlike.Model.Answer). classes has the names of the classes of the
// outputs that have some: such an output o is in the arrays o_probability and o_class.
func Columns(outputs map[string]data.Array, classes map[string][]string) (columns []Column, err error) {
	of := map[string]bool{}
	for name := range outputs {
		of[name] = true
	}
	for name := range classes {
		delete(of, name+probability)
		delete(of, name+class)
		of[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if names, ok := classes[name]; ok {
			columns = append(columns, ofClasses(name, outputs[name+probability], outputs[name+class], names)...)
		} else {
			columns = append(columns, values(name, outputs[name]))
		}
	}
	for name, a := range outputs {
		if !finite(a.Flat) {
			return nil, fmt.Errorf("the output %q has a NaN or an infinite number", name)
		}
	}
	return columns, nil
}

const probability, class = "_probability", "_class"

func finite(flat any) bool {
	switch flat := flat.(type) {
	case []float32:
		return !slices.ContainsFunc(flat, func(v float32) bool { return v-v != 0 })
	case []float64:
		return !slices.ContainsFunc(flat, func(v float64) bool { return v-v != 0 })
	}
	return true
}

func values(name string, a data.Array) Column {
	size := a.Size() / max(1, a.Len())
	row := func(i int) reflect.Value { return reflect.ValueOf(a.Flat).Slice(i*size, (i+1)*size) }
	c := Column{Name: name, JSON: func(i int) any { return row(i).Interface() }}
	for k := range size {
		c.Header = append(c.Header, fmt.Sprintf("%s_%d", name, k))
	}
	c.Cells = func(i int) (cells []any) {
		for k := range size {
			cells = append(cells, row(i).Index(k).Interface())
		}
		return cells
	}
	return c
}

func ofClasses(name string, probabilities, chosen data.Array, names []string) []Column {
	p, c := values(name+probability, probabilities), values(name+class, chosen)
	if len(probabilities.Dims) > 2 { // one for each position
		return []Column{p, c}
	}
	width := len(p.Header)
	if width == 1 && len(names) == 2 { // the probability of class 1
		names = names[1:]
	}
	list := p.JSON
	for k, of := range names {
		p.Header[k] = p.Name + "_" + of
	}
	p.JSON = func(i int) any {
		row, by := reflect.ValueOf(list(i)), map[string]any{}
		for k, of := range names {
			by[of] = row.Index(k).Interface()
		}
		return by
	}
	if chosen.Size() == chosen.Len() { // one class
		c.Header = []string{c.Name}
		one := c.Cells
		c.JSON = func(i int) any { return one(i)[0] }
		return []Column{p, c}
	}
	each := c.Cells
	is := func(i, k int) bool { // the texts of absent classes are empty
		v := reflect.ValueOf(each(i)[k])
		return !v.IsZero()
	}
	for k, of := range names {
		c.Header[k] = c.Name + "_" + of
	}
	c.JSON = func(i int) any {
		labels := []string{}
		for k, of := range names {
			if is(i, k) {
				labels = append(labels, of)
			}
		}
		return labels
	}
	c.Cells = func(i int) (cells []any) {
		for k := range names {
			cells = append(cells, map[bool]int{true: 1}[is(i, k)])
		}
		return cells
	}
	return []Column{p, c}
}

func Object(columns []Column, row int) map[string]any {
	object := map[string]any{}
	for _, c := range columns {
		object[c.Name] = c.JSON(row)
	}
	return object
}
