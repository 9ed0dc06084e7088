package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// normalize moves the elements into raw_data: each dtype has one form.
func (m message) normalize() error {
	fail := func(format string, of ...any) error {
		return fmt.Errorf("the tensor %q "+format, append([]any{m.text("name")}, of...)...)
	}
	if len(m.values("external_data")) > 0 || m.number("data_location") != 0 {
		return fail("is external data, expected its elements in this file: save the model in one file")
	}
	if m.has("segment") {
		return fail("is in segments, which are not implemented")
	}
	kind, known := kinds[m.number("data_type")]
	if !known {
		return fail("has the data type %d of ONNX, expected one of %s", m.number("data_type"), knownKinds())
	}
	size, width := int64(1), int64(kind.dtype.Size())
	for _, v := range m.values("dims") {
		dim := v.Int()
		if dim < 0 || dim > 0 && size > mostBytes/dim {
			return fail("has the shape %v, expected at most %d elements", m.dims(), mostBytes)
		}
		size *= dim
	}
	data := m.bytes("raw_data")
	if !m.has("raw_data") {
		elements := m.Get(m.field(kind.field)).List()
		data = make([]byte, 0, int64(elements.Len())*width)
		for i := range elements.Len() {
			data = appendElement(data, elements.Get(i), int(width))
		}
	}
	if int64(len(data)) != size*width {
		return fail("has %d bytes, expected %d for (%s)%v", len(data), size*width, kind.dtype, m.dims())
	}
	if kind.dtype == dtypes.Bool {
		for i, b := range data {
			data[i] = min(b, 1)
		}
	}
	for _, name := range []string{"float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data"} {
		m.clear(name)
	}
	m.set("raw_data", data)
	return nil
}

func appendElement(data []byte, v protoreflect.Value, width int) []byte {
	var bits uint64
	switch x := v.Interface().(type) {
	case float32:
		bits = uint64(math.Float32bits(x))
	case float64:
		bits = math.Float64bits(x)
	case int32:
		bits = uint64(x)
	case int64:
		bits = uint64(x)
	case uint64:
		bits = x
	}
	return append(data, binary.LittleEndian.AppendUint64(nil, bits)[:width]...)
}

func (m message) dims() (dims []int) {
	for _, v := range m.values("dims") {
		dims = append(dims, int(v.Int()))
	}
	return dims
}
