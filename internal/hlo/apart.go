package hlo

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// bytes of a constant in the text
const largest = 1 << 20

// Apart makes constants above 1 MiB the last parameters, and returns b. The caller feeds [Parameter.Value].
func (b *Builder) Apart() *Builder {
	b.apart = true
	return b
}

// home returns main for a large constant, a parameter: called functions cannot see main's.
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

func (f *Function) constantApart(flat any, shape shapes.Shape) (*value, error) {
	p := Parameter{Name: fmt.Sprintf("#constant%d", len(f.b.constants)), Shape: shape, Value: bytes.Clone(bytesOf(flat))}
	if len(f.b.meshes) > 0 { // else Shardy would choose
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

func bytesOf(slice any) []byte {
	v := reflect.ValueOf(slice)
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

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

func (m *Module) Constants() (first, n int) {
	first = len(m.Parameters)
	for i, p := range m.Parameters {
		if p.Value != nil {
			first, n = min(first, i), n+1
		}
	}
	return first, n
}
