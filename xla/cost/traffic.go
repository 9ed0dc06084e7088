package cost

import (
	"slices"
	"strings"
)

func operandBytes(i *instruction) float64 {
	var sum float64
	for _, o := range i.operands {
		if o.shape.space == 0 {
			sum += o.shape.bytes()
		}
	}
	return sum
}

func instructionBytes(i *instruction) float64 {
	written := 0.0
	for _, r := range results(i) {
		if r.space == 0 {
			written += r.bytes()
		}
	}
	switch {
	case taking[strings.TrimSuffix(i.opcode, "-start")] && len(i.operands) > 0:
		read := 0.0
		if part := results(i); i.operands[0].shape.space == 0 && len(part) > 0 {
			read = part[0].bytes()
		}
		return read + written + operandBytes(&instruction{operands: i.operands[1:]})
	case i.opcode == "dynamic-update-slice" && len(i.operands) > 1:
		return 2 * i.operands[1].shape.bytes()
	case i.opcode == "scatter" && len(i.operands) > 2:
		return 3*i.operands[len(i.operands)-1].shape.bytes() + i.operands[len(i.operands)-2].shape.bytes()
	}
	return operandBytes(i) + written
}

// They read a part of their first operand.
var taking = map[string]bool{"dynamic-slice": true, "slice": true, "gather": true}

// without an asynchronous start's operands and contexts
func results(i *instruction) []shape {
	leaves := i.shape.leaves()
	if !strings.HasSuffix(i.opcode, "-start") || !i.shape.tuple {
		return leaves
	}
	if i.opcode == "copy-start" { // result, operand, context
		return leaves[:min(1, len(leaves))]
	}
	return leaves[operandLeaves(i):]
}

func operandLeaves(i *instruction) int {
	leaves := i.shape.leaves()
	n := 0
	for _, o := range i.operands {
		for _, l := range o.shape.leaves() {
			if n >= len(leaves) || !sameShape(leaves[n], l) {
				return 0
			}
			n++
		}
	}
	if n == len(leaves) { // results only, as of an all-reduce
		return 0
	}
	return n
}

// The used parts of operands, and results or parts written in place.
func (c *counter) fusionBytes(i *instruction) (float64, error) {
	called, err := c.m.called(i, "calls")
	if err != nil {
		return 0, err
	}
	if len(called) != 1 {
		return operandBytes(i) + i.shape.bytes(), nil
	}
	f := called[0]
	users := map[*instruction][]*instruction{}
	for _, inner := range f.instructions {
		for _, o := range inner.operands {
			users[o] = append(users[o], inner)
		}
	}
	var sum float64
	for n, o := range i.operands {
		if o.shape.space != 0 {
			continue
		}
		read := o.shape.bytes()
		if n < len(f.parameters) {
			if part, found := partRead(f.parameters[n], users); found {
				read = min(read, part)
			}
		}
		sum += read
	}
	for _, root := range roots(f.root) {
		switch {
		case root.shape.space != 0:
		case root.opcode == "dynamic-update-slice" && len(root.operands) > 1:
			sum += root.operands[1].shape.bytes()
		default:
			sum += root.shape.bytes()
		}
	}
	return sum, nil
}

func roots(root *instruction) []*instruction {
	for root.opcode == "bitcast" && len(root.operands) == 1 {
		root = root.operands[0]
	}
	if root.opcode != "tuple" {
		return []*instruction{root}
	}
	var all []*instruction
	for _, o := range root.operands {
		for o.opcode == "bitcast" && len(o.operands) == 1 {
			o = o.operands[0]
		}
		all = append(all, o)
	}
	return all
}

func partRead(p *instruction, users map[*instruction][]*instruction) (float64, bool) {
	var sum float64
	todo := slices.Clone(users[p])
	of := p
	if len(todo) == 1 && todo[0].opcode == "bitcast" {
		of, todo = todo[0], users[todo[0]]
	}
	if len(todo) == 0 {
		return 0, false
	}
	for _, u := range todo {
		switch {
		case (u.opcode == "dynamic-slice" || u.opcode == "slice" || u.opcode == "gather") && u.operands[0] == of:
			sum += u.shape.bytes()
		case u.opcode == "dynamic-update-slice" && u.operands[0] == of && len(u.operands) > 1 && u.operands[1] != of: // overwritten in place
		default:
			return 0, false
		}
	}
	return sum, true
}
