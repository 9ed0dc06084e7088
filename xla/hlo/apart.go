package hlo

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// largest is the size in bytes of the largest constant that is a part of the program's text. XLA takes some 17 times a
// constant's size to read it there, and keeps much of that.
const largest = 1 << 20

// Apart has large constants (above 1 MiB) stay out of the program's text: they become parameters behind all others. To
// run the program, set them to their [Parameter.Value]. It gives b back.
func (b *Builder) Apart() *Builder {
	b.apart = true
	return b
}

// home is the function that gets a large constant as a parameter, nil if it stays in the text: functions that are
// called see nothing of main.
func (f *Function) home(flat any) *Function {
	for f.parent != nil {
		f = f.parent
	}
	slice := reflect.ValueOf(flat)
	if f.b.apart && f == f.b.main && slice.Kind() == reflect.Slice && slice.Len()*int(slice.Type().Elem().Size()) > largest {
		return f
	}
	return nil
}

var constantPattern = regexp.MustCompile(`%k(\d+)\b`)

// constantApart makes a parameter of a constant. Its name in the text changes when its place is known.
func (f *Function) constantApart(flat any, shape shapes.Shape) (*value, error) {
	p := Parameter{Name: fmt.Sprintf("#constant%d", len(f.b.constants)), Shape: shape, Value: bytes.Clone(bytesOf(flat))}
	if len(f.b.meshes) > 0 { // whole on each device; of what is left open, Shardy would decide
		var err error
		whole := &compute.ShardingSpec{Mesh: f.b.meshes[0].Name(), Axes: make([][]string, shape.Rank())}
		if p.split, err = f.b.sharding(whole, shape, false); err != nil {
			return nil, err
		}
	}
	v, err := f.text.NamedInput(fmt.Sprintf("k%d", len(f.b.constants)), toXLA(shape))
	if err == nil {
		f.b.constants = append(f.b.constants, p)
	}
	return v, err
}

// addConstants gives places to the large constants that the program uses.
func (m *Module) addConstants(all []Parameter) {
	place := map[string]int{}
	m.body = constantPattern.ReplaceAllStringFunc(m.body, func(name string) string {
		at, known := place[name]
		if !known {
			k, _ := strconv.Atoi(name[len("%k"):])
			at, place[name] = len(m.Parameters), len(m.Parameters)
			m.Parameters = append(m.Parameters, all[k])
		}
		return "%" + parameterName(at)
	})
}

// Constants gives the place of the first parameter that is a large constant, and how many there are, one behind the
// other.
func (m *Module) Constants() (first, n int) {
	first = len(m.Parameters)
	for i, p := range m.Parameters {
		if p.Value != nil {
			first, n = min(first, i), n+1
		}
	}
	return first, n
}
