package tensorboard

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

type message []byte

func (m message) bytes(field protowire.Number, v []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), v)
}

func (m message) text(field protowire.Number, v string) message {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), v)
}

func (m message) integer(field protowire.Number, v int64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(v))
}

func (m message) float(field protowire.Number, v float64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), math.Float64bits(v))
}

func (m message) float32(field protowire.Number, v float32) message {
	return protowire.AppendFixed32(protowire.AppendTag(m, field, protowire.Fixed32Type), math.Float32bits(v))
}

func eventOf(seconds float64, step int64, field protowire.Number, what []byte) message {
	return message{}.float(1, seconds).integer(2, step).bytes(field, what)
}

const (
	fileVersion = 3
	summary     = 5
	sessionLog  = 7
)

const (
	dtFloat  = 1
	dtDouble = 2
	dtString = 7
)

const (
	ofTensors = 2
	ofBlobs   = 3
)

func value(tag, plugin string, content message, class int64, tensor message) message {
	metadata := message{}.bytes(1, message{}.text(1, plugin).bytes(2, content)).integer(4, class)
	return message{}.text(1, tag).bytes(9, metadata).bytes(8, tensor)
}

func tensor(dtype int64, shape ...int) message {
	var dimensions message
	for _, n := range shape {
		dimensions = dimensions.bytes(2, message{}.integer(1, int64(n)))
	}
	return message{}.integer(1, dtype).bytes(2, dimensions)
}

// number has TensorFlow 1's form: EventAccumulator returns it by Scalars and drops it at a restart, unlike tensors.
func number(tag string, v float64) message { return message{}.text(1, tag).float32(2, float32(v)) }

func doubles(values []float64, shape ...int) message {
	var content []byte
	for _, v := range values {
		content = binary.LittleEndian.AppendUint64(content, math.Float64bits(v))
	}
	return tensor(dtDouble, shape...).bytes(4, content)
}

func texts(values [][]byte, shape ...int) message {
	t := tensor(dtString, shape...)
	for _, v := range values {
		t = t.bytes(8, v)
	}
	return t
}
