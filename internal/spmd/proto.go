package spmd

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of XLA's hlo.proto and xla_data.proto. Plugins write groups in four places.
const (
	// HloModuleProto
	fieldModuleName         = 1
	fieldComputations       = 3
	fieldModuleID           = 5
	fieldEntry              = 6
	fieldSchedule           = 7
	fieldOutputSharding     = 12
	fieldParameterShardings = 14
	fieldDeviceAssignment   = 15
	fieldAutoPartitioning   = 16
	fieldStackFrames        = 17

	// HloComputationProto
	fieldComputationName = 1
	fieldInstructions    = 2
	fieldProgramShape    = 4
	fieldComputationID   = 5
	fieldRoot            = 6

	// HloInstructionProto
	fieldName               = 1
	fieldOpcode             = 2
	fieldShape              = 3
	fieldMetadata           = 7
	fieldLiteral            = 8
	fieldParameterNumber    = 9
	fieldTupleIndex         = 13
	fieldDimensions         = 14
	fieldSliceDimensions    = 17
	fieldChannel            = 26
	fieldTarget             = 28
	fieldID                 = 35
	fieldOperands           = 36
	fieldControl            = 37
	fieldCalled             = 38
	fieldSharding           = 40
	fieldBackendConfig      = 43
	fieldAllReduceID        = 45
	fieldReplicaGroups      = 49 // ReplicaGroup
	fieldPairs              = 52 // SourceTarget
	fieldConstrainLayout    = 56
	fieldOperandShapes      = 57
	fieldSideEffect         = 65
	fieldFrontendAttributes = 68
	fieldGlobalIDs          = 71
	fieldAliasing           = 74
	fieldAPIVersion         = 77
	fieldStatistics         = 82
	fieldDeviceList         = 87 // CollectiveDeviceListProto
	fieldOriginalValue      = 88
	fieldIotaGroups         = 92 // IotaReplicaGroupListProto
	fieldMeshGroups         = 93 // MeshAxesReplicaGroupListProto
	fieldPrecision          = 51
	fieldAsyncThread        = 79
	fieldResultAccuracy     = 91
	fieldBackendPayload     = 99

	// OutputOperandAliasing
	fieldAliasedOutput  = 1
	fieldAliasedOperand = 2

	// SliceDimensions
	fieldSliceStart  = 1
	fieldSliceLimit  = 2
	fieldSliceStride = 3

	// ProgramShapeProto
	fieldParameters     = 1
	fieldResult         = 2
	fieldParameterNames = 3

	// ShapeProto
	fieldElementType = 2
	fieldDims        = 3
	fieldTuple       = 4
	fieldLayout      = 5
	fieldDynamic     = 6
	// LayoutProto
	fieldMinorToMajor = 1

	// LiteralProto
	fieldLiteralShape = 1
	fieldU32s         = 6

	// OpMetadata
	fieldOpName     = 2
	fieldSourceFile = 3
	fieldSourceLine = 4
	fieldFrame      = 15

	// StackFrameIndexProto
	fieldFileNames = 1
	fieldLocations = 3
	fieldFrames    = 4
	// FileLocation
	fieldFileName = 1
	fieldLine     = 3
	// StackFrame
	fieldLocation = 1

	// ReplicaGroup
	fieldReplicas = 1
	// CollectiveDeviceListProto
	fieldGroups   = 1
	fieldListIota = 2 // of older plugins
	// IotaReplicaGroupListProto
	fieldGroupCount = 1
	fieldGroupSize  = 2
	fieldReshape    = 3
	fieldTranspose  = 4
	// MeshAxesReplicaGroupListProto
	fieldMesh = 1
	fieldAxes = 2
	// MeshProto, MeshAxis
	fieldMeshAxes = 1
	fieldMeshIDs  = 2
	fieldAxisSize = 2
	// AxisRefProto, SubAxis
	fieldAxis    = 1
	fieldSubAxis = 2
	fieldPreSize = 1
	fieldSubSize = 2
	// SourceTarget
	fieldSource      = 1
	fieldDestination = 2
)

var errMalformed = errors.New("malformed module")

type field struct {
	number protowire.Number
	kind   protowire.Type
	raw    []byte // with its tag
	value  uint64
	data   []byte
}

// fieldsOf shares the message's memory.
func fieldsOf(message []byte) (fields []field, err error) {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil, fmt.Errorf("%w: %w", errMalformed, protowire.ParseError(size))
		}
		f := field{number: number, kind: kind}
		var length int
		switch kind {
		case protowire.VarintType:
			f.value, length = protowire.ConsumeVarint(message[size:])
		case protowire.BytesType:
			f.data, length = protowire.ConsumeBytes(message[size:])
		default:
			length = protowire.ConsumeFieldValue(number, kind, message[size:])
		}
		if length < 0 {
			return nil, fmt.Errorf("%w: field %d: %w", errMalformed, number, protowire.ParseError(length))
		}
		f.raw, message = message[:size+length:size+length], message[size+length:]
		fields = append(fields, f)
	}
	return fields, nil
}

func (f field) number64() (int64, error) {
	if f.kind != protowire.VarintType {
		return 0, fmt.Errorf("%w: field %d is not a number", errMalformed, f.number)
	}
	return int64(f.value), nil
}

func (f field) bytes() ([]byte, error) {
	if f.kind != protowire.BytesType {
		return nil, fmt.Errorf("%w: field %d has no length", errMalformed, f.number)
	}
	return f.data, nil
}

func (f field) appendTo(list []int64) ([]int64, error) {
	if f.kind == protowire.VarintType {
		return append(list, int64(f.value)), nil
	}
	data, err := f.bytes()
	if err != nil {
		return nil, err
	}
	for len(data) > 0 {
		n, size := protowire.ConsumeVarint(data)
		if size < 0 {
			return nil, fmt.Errorf("%w: field %d: %w", errMalformed, f.number, protowire.ParseError(size))
		}
		list, data = append(list, int64(n)), data[size:]
	}
	return list, nil
}

func appendNumber(to []byte, number protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), uint64(v))
}

func appendBytes[T ~string | ~[]byte](to []byte, number protowire.Number, v T) []byte {
	return append(protowire.AppendVarint(protowire.AppendTag(to, number, protowire.BytesType), uint64(len(v))), v...)
}

func appendNumbers(to []byte, number protowire.Number, list []int64) []byte {
	if len(list) == 0 {
		return to
	}
	var packed []byte
	for _, v := range list {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return appendBytes(to, number, packed)
}

type shape struct {
	element int64
	dims    []int64
	dynamic bool
	tuple   []shape
	raw     []byte
}

const (
	typeTuple = 13
	typeToken = 17
	typeU32   = 8
	typePred  = 1
)

var token = shape{element: typeToken}

func array(element int64, dims ...int64) shape { return shape{element: element, dims: dims} }

func tupleOf(parts ...shape) shape { return shape{element: typeTuple, tuple: parts} }

// deepest limits nested tuples.
const deepest = 64

func parseShape(message []byte, depth int) (s shape, err error) {
	if depth > deepest {
		return s, fmt.Errorf("%w: tuples are nested more than %d deep", errMalformed, deepest)
	}
	s.raw = message
	fields, err := fieldsOf(message)
	for _, f := range fields {
		if err != nil {
			break
		}
		switch f.number {
		case fieldElementType:
			s.element, err = f.number64()
		case fieldDims:
			s.dims, err = f.appendTo(s.dims)
		case fieldDynamic:
			var list []int64
			if list, err = f.appendTo(nil); slices.Contains(list, 1) {
				s.dynamic = true
			}
		case fieldTuple:
			var part []byte
			if part, err = f.bytes(); err == nil {
				var sub shape
				sub, err = parseShape(part, depth+1)
				s.tuple = append(s.tuple, sub)
			}
		}
	}
	for _, d := range s.dims {
		if d < 0 && err == nil {
			err = fmt.Errorf("%w: a shape has an axis of length %d", errMalformed, d)
		}
	}
	return s, err
}

func (s shape) marshal() []byte {
	if s.raw != nil {
		return s.raw
	}
	out := appendNumber(nil, fieldElementType, s.element)
	for _, part := range s.tuple {
		out = appendBytes(out, fieldTuple, part.marshal())
	}
	if s.element == typeTuple || s.element == typeToken {
		return out
	}
	out = appendNumbers(out, fieldDims, s.dims)
	out = appendNumbers(out, fieldDynamic, make([]int64, len(s.dims)))
	var minorFirst []int64
	for i := range s.dims {
		minorFirst = append(minorFirst, int64(len(s.dims)-1-i))
	}
	return appendBytes(out, fieldLayout, appendNumbers(nil, fieldMinorToMajor, minorFirst))
}

func (s shape) inRows() shape { return array(s.element, s.dims...) }

func (s shape) elements() int64 {
	n := int64(1)
	for _, d := range s.dims {
		n *= d
	}
	return n
}
