package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// message has the types that onnx-gomlx registers.
type message struct{ protoreflect.Message }

func decode(text []byte) (message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName("protos.ModelProto")
	if err != nil {
		return message{}, err
	}
	m := message{kind.New()}
	parts := 0
	if err := count(text, m.Descriptor(), &parts, 0); err != nil {
		return message{}, fmt.Errorf("it is not an ONNX model, or damaged: %w", err)
	}
	if err := (proto.UnmarshalOptions{RecursionLimit: mostMessages}).Unmarshal(text, m.Interface()); err != nil {
		return message{}, fmt.Errorf("it is not an ONNX model, or damaged: %w", err)
	}
	if !m.has("graph") {
		return message{}, errors.New("it is not an ONNX model: it has no graph")
	}
	return m, nil
}

const mostMessages = 100 // in messages

// count counts the messages and the texts in lists, before they take memory: those of two bytes take a hundred times as
// much.
func count(text []byte, of protoreflect.MessageDescriptor, parts *int, depth int) error {
	if depth > mostMessages {
		return fmt.Errorf("messages in messages, deeper than %d", mostMessages)
	}
	for len(text) > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return protowire.ParseError(n)
		}
		text = text[n:]
		if n = protowire.ConsumeFieldValue(number, kind, text); n < 0 {
			return protowire.ParseError(n)
		}
		value := text[:n]
		text = text[n:]
		field := of.Fields().ByNumber(number)
		if kind != protowire.BytesType || field == nil {
			continue
		}
		inner := field.Message()
		if inner == nil && (!field.IsList() || field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind) {
			continue
		}
		if *parts++; *parts > mostParts {
			return fmt.Errorf("more than %d messages and texts", mostParts)
		}
		if inner != nil {
			value, _ = protowire.ConsumeBytes(value)
			if err := count(value, inner, parts, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m message) field(name string) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(protoreflect.Name(name))
}

func (m message) has(name string) bool    { return m.Has(m.field(name)) }
func (m message) clear(name string)       { m.Clear(m.field(name)) }
func (m message) text(name string) string { return m.Get(m.field(name)).String() }
func (m message) bytes(name string) []byte {
	return m.Get(m.field(name)).Bytes()
}

func (m message) number(name string) int64 {
	v := m.Get(m.field(name))
	if m.field(name).Kind() == protoreflect.EnumKind {
		return int64(v.Enum())
	}
	return v.Int()
}

func (m message) child(name string) message { return message{m.Get(m.field(name)).Message()} }

func (m message) mutable(name string) message { return message{m.Mutable(m.field(name)).Message()} }

func (m message) add(list string) message {
	return message{m.Mutable(m.field(list)).List().AppendMutable().Message()}
}

func (m message) set(name string, value any) {
	if m.field(name).Kind() == protoreflect.EnumKind {
		value = protoreflect.EnumNumber(value.(int32))
	}
	m.Set(m.field(name), protoreflect.ValueOf(value))
}

func (m message) values(name string) []protoreflect.Value {
	of := m.Get(m.field(name)).List()
	all := make([]protoreflect.Value, of.Len())
	for i := range all {
		all[i] = of.Get(i)
	}
	return all
}

func (m message) list(name string) (all []message) {
	for _, v := range m.values(name) {
		all = append(all, message{v.Message()})
	}
	return all
}

func (m message) texts(name string) (all []string) {
	for _, v := range m.values(name) {
		all = append(all, v.String())
	}
	return all
}

func (m message) named(list string) (all []string) {
	for _, of := range m.list(list) {
		all = append(all, of.text("name"))
	}
	return all
}

func (m message) keep(list string, f func(message) bool) {
	of := m.Mutable(m.field(list)).List()
	kept := 0
	for i := range of.Len() {
		if f(message{of.Get(i).Message()}) {
			of.Set(kept, of.Get(i))
			kept++
		}
	}
	of.Truncate(kept)
}

func inputOf(v message) (in Input, err error) {
	in.Name = v.text("name")
	of := v.child("type").child("tensor_type")
	if !v.child("type").has("tensor_type") || !of.has("shape") {
		return in, fmt.Errorf("the input %q is not a tensor with a shape", in.Name)
	}
	kind, known := kinds[of.number("elem_type")]
	if !known {
		return in, fmt.Errorf("the input %q has the data type %d of ONNX, expected one of %s", in.Name, of.number("elem_type"), knownKinds())
	}
	in.DType = kind.dtype
	for _, dim := range of.child("shape").list("dim") {
		size := int64(-1)
		if dim.has("dim_value") {
			if size = dim.number("dim_value"); size < 1 || size > mostBytes {
				return in, fmt.Errorf("the input %q has an axis of size %d", in.Name, size)
			}
		}
		in.Dims = append(in.Dims, int(size))
	}
	return in, nil
}

func (m message) attribute(name string) (a message, found bool) {
	for _, a := range m.list("attribute") {
		if a.text("name") == name {
			return a, true
		}
	}
	return message{}, false
}

func (m message) setInputs(names []string) {
	m.clear("input")
	for _, name := range names {
		m.addText("input", name)
	}
}

func (m message) numbers(name string, otherwise ...int64) (all []int64) {
	a, found := m.attribute(name)
	switch {
	case !found:
		return otherwise
	case a.number("type") == 2:
		return []int64{a.number("i")}
	}
	for _, v := range a.values("ints") {
		all = append(all, v.Int())
	}
	return all
}

func (m message) drop(name string) {
	m.keep("attribute", func(a message) bool { return a.text("name") != name })
}

func (m message) addInput(w weight) {
	in := m.add("input")
	in.set("name", w.name)
	of := in.mutable("type").mutable("tensor_type")
	of.set("elem_type", int32(w.kind))
	shape := of.mutable("shape")
	for _, dim := range w.shape.Dimensions {
		shape.add("dim").set("dim_value", int64(dim))
	}
}

// kinds has tensors' data types by ONNX's number, and the field of the elements without raw_data.
var kinds = map[int64]struct {
	dtype dtypes.DType
	field string
}{
	1: {dtypes.Float32, "float_data"}, 2: {dtypes.Uint8, "int32_data"}, 3: {dtypes.Int8, "int32_data"}, 4: {dtypes.Uint16, "int32_data"},
	5: {dtypes.Int16, "int32_data"}, 6: {dtypes.Int32, "int32_data"}, 7: {dtypes.Int64, "int64_data"}, 9: {dtypes.Bool, "int32_data"},
	10: {dtypes.Float16, "int32_data"}, 11: {dtypes.Float64, "double_data"}, 12: {dtypes.Uint32, "uint64_data"},
	13: {dtypes.Uint64, "uint64_data"}, 16: {dtypes.BFloat16, "int32_data"},
}

func knownKinds() string {
	var all []string
	for _, kind := range kinds {
		all = append(all, kind.dtype.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (m message) addNode(operator, output string, inputs ...string) message {
	node := m.add("node")
	node.set("op_type", operator)
	for _, name := range inputs {
		node.addText("input", name)
	}
	node.addText("output", output)
	return node
}

func (m message) addText(list, text string) {
	m.Mutable(m.field(list)).List().Append(protoreflect.ValueOfString(text))
}

func (m message) addTensor(name string, t message) {
	a := m.add("attribute")
	a.set("name", name)
	a.set("type", int32(4)) // a tensor
	a.Set(a.field("t"), protoreflect.ValueOfMessage(t.Message))
}

func (m message) addNumber(list string, x int64) {
	m.Mutable(m.field(list)).List().Append(protoreflect.ValueOfInt64(x))
}

func (m message) addInts(name string, all []int64) {
	a := m.add("attribute")
	a.set("name", name)
	a.set("type", int32(7)) // whole numbers
	for _, x := range all {
		a.addNumber("ints", x)
	}
}

func (m message) addInt(name string, x int64) {
	a := m.add("attribute")
	a.set("name", name)
	a.set("type", int32(2)) // a whole number
	a.set("i", x)
}
