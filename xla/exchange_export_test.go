package xla

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Instructions are the instructions of a program as the devices run it: for each its operation, such as "all-reduce",
// and the numbers that XLA gives to the types of its elements (xla_data.proto: 11 is F32, 12 F64, 5 S64, 8 U32).
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

// WrittenFor has the runtime write programs as for a plugin of another kind; it runs them as before.
func WrittenFor(r *Runtime, kind string) { r.Backend.(*client).plugin.Kind = kind }

// Instruction is one of a compiled program.
type Instruction struct {
	Op    string
	Types []uint64
}

// protoTypes are the types of a shape, or of the parts of a tuple.
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

// protoFields are the messages at a path of field numbers.
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

// RankLimit is how many processes a runtime is refused for.
var RankLimit = rankLimit

// FirstDifference says in which line two programs differ.
var FirstDifference = firstDifference
