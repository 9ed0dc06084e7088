package pjrt

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

type signature struct {
	parameters []Shape
	donated    map[int]int
}

// Fields read, from XLA's hlo.proto and xla_data.proto.
const (
	fieldModule = 1 // HloModuleProtoWithConfig

	// HloModuleProto
	fieldProgramShape = 4
	fieldAliases      = 8
	// ProgramShapeProto
	fieldParameters = 1
	// ShapeProto
	fieldElementType = 2
	fieldDimensions  = 3
	// HloInputOutputAliasProto
	fieldEntries = 1
	// AliasEntryProto
	fieldOutputIndex    = 1
	fieldParameter      = 2
	fieldParameterIndex = 3
)

func parseModule(module []byte) (s signature, err error) {
	s.donated = map[int]int{}
	err = eachField(module, func(number protowire.Number, _ uint64, data []byte) error {
		switch number {
		case fieldProgramShape:
			return eachField(data, func(number protowire.Number, _ uint64, data []byte) error {
				if number != fieldParameters {
					return nil
				}
				shape, err := parseShape(data)
				s.parameters = append(s.parameters, shape)
				return err
			})
		case fieldAliases:
			return eachField(data, func(number protowire.Number, _ uint64, data []byte) error {
				if number != fieldEntries {
					return nil
				}
				return s.parseAlias(data)
			})
		}
		return nil
	})
	return s, err
}

func (s *signature) parseAlias(entry []byte) error {
	output, parameter, nested := []int{}, 0, false
	err := eachField(entry, func(number protowire.Number, value uint64, data []byte) (err error) {
		switch number {
		case fieldOutputIndex:
			output, err = appendNumbers(output, value, data)
		case fieldParameter:
			parameter = int(value)
		case fieldParameterIndex:
			nested = true
		}
		return err
	})
	if err != nil {
		return err
	}
	if nested || len(output) > 1 {
		return fmt.Errorf("pjrt: the program aliases output %v to a part of parameter %d: tuples are not supported", output, parameter)
	}
	if len(output) == 0 {
		output = []int{0}
	}
	s.donated[output[0]] = parameter
	return nil
}

func parseShape(shape []byte) (s Shape, err error) {
	err = eachField(shape, func(number protowire.Number, value uint64, data []byte) (err error) {
		switch number {
		case fieldElementType:
			for d, dtype := range dtypes {
				if dtype.primitive == value {
					s.DType = DType(d)
				}
			}
		case fieldDimensions:
			s.Dims, err = appendNumbers(s.Dims, value, data)
		}
		return err
	})
	return s, err
}

func appendNumbers(to []int, value uint64, data []byte) ([]int, error) {
	if data == nil {
		return append(to, int(value)), nil
	}
	for len(data) > 0 {
		n, size := protowire.ConsumeVarint(data)
		if size < 0 {
			return nil, fmt.Errorf("pjrt: read a program: %w", protowire.ParseError(size))
		}
		to, data = append(to, int(n)), data[size:]
	}
	return to, nil
}

// f gets value for numbers, data for fields with a length.
func eachField(message []byte, f func(number protowire.Number, value uint64, data []byte) error) error {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return fmt.Errorf("pjrt: read a program: %w", protowire.ParseError(size))
		}
		message = message[size:]
		var value uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			value, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			data, size = protowire.ConsumeBytes(message)
			if data == nil {
				data = []byte{}
			}
		default:
			size = protowire.ConsumeFieldValue(number, kind, message)
		}
		if size < 0 {
			return fmt.Errorf("pjrt: read a program: %w", protowire.ParseError(size))
		}
		message = message[size:]
		if err := f(number, value, data); err != nil {
			return err
		}
	}
	return nil
}
