package xla

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Instructions returns the instructions of a compiled program: each with its operation, such as "all-reduce", and XLA's
// numbers of its dtypes (xla_data.proto: 11 is F32, 12 F64, 5 S64, 8 U32).
func Instructions(p *Program) ([]Instruction, error) {
	code, format, err := p.runs.(*calls).executable.pjrt.OptimizedProgram()
	switch {
	case err != nil:
		return nil, err
	case format == "hlo_with_config":
		code = protoFields(code, 1)[0]
	case format != "hlo":
		return nil, fmt.Errorf("a program of format %q", format)
	}
	var all []Instruction
	for _, computation := range protoFields(code, 3) {
		for _, one := range protoFields(computation, 2) {
			in := Instruction{Op: string(protoFields(one, 2)[0])}
			for _, shape := range protoFields(one, 3) {
				in.Types = append(in.Types, protoTypes(shape)...)
			}
			all = append(all, in)
		}
	}
	return all, nil
}

// WrittenFor makes the runtime write programs as for another kind of plugin; it runs them unchanged.
func WrittenFor(r *Runtime, kind string) { r.Backend.(*pjrtClient).plugin.Kind = kind }

// Instruction is an instruction of a compiled program.
type Instruction struct {
	Op    string
	Types []uint64
}

// protoTypes returns the dtypes of a shape, or of a tuple's parts.
func protoTypes(shape []byte) (types []uint64) {
	for _, part := range protoFields(shape, 4) {
		types = append(types, protoTypes(part)...)
	}
	for len(shape) > 0 {
		number, kind, n := protowire.ConsumeTag(shape)
		shape = shape[n:]
		if number == 2 && kind == protowire.VarintType {
			t, _ := protowire.ConsumeVarint(shape)
			types = append(types, t)
		}
		shape = shape[protowire.ConsumeFieldValue(number, kind, shape):]
	}
	return types
}

// protoFields returns the messages at a path of field numbers.
func protoFields(message []byte, path ...protowire.Number) (found [][]byte) {
	if len(path) == 0 {
		return [][]byte{message}
	}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		message = message[n:]
		if number == path[0] && kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(message)
			found = append(found, protoFields(inner, path[1:]...)...)
		}
		message = message[protowire.ConsumeFieldValue(number, kind, message):]
	}
	return found
}

// RankLimit is the limit of processes.
var RankLimit = rankLimit

// FirstDifference describes the line in which two programs differ.
var FirstDifference = firstDifference
