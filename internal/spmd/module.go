package spmd

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// module is an HloModuleProto. Other fields keep their bytes.
type module struct {
	name         string
	entry        int64
	computations []*computation
	byID         map[int64]*computation
	rest         []field
	frames       []byte // StackFrameIndexProto
	next         int64  // next free id; 0: per computation
}

type computation struct {
	name         string
	id, root     int64
	last         int64
	instructions []*instruction
	byID         map[int64]*instruction
	rest         []field
	in           *module
}

type instruction struct {
	name, opcode string
	id           int64
	shape        shape
	operands     []int64
	control      []int64
	called       []int64
	channel      int64
	rest         []field // of a new instruction: extra
	extra        []byte
}

func parseModule(message []byte) (*module, error) {
	m := &module{byID: map[int64]*computation{}}
	fields, err := fieldsOf(message)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		var data []byte
		switch f.number {
		case fieldModuleName:
			data, err = f.bytes()
			m.name = string(data)
			m.rest = append(m.rest, f)
		case fieldComputations:
			if data, err = f.bytes(); err == nil {
				err = m.parseComputation(data)
			}
		case fieldEntry:
			m.entry, err = f.number64()
			m.rest = append(m.rest, f)
		case fieldStackFrames:
			m.frames, err = f.bytes()
			m.rest = append(m.rest, f)
		case fieldSchedule:
			if len(f.data) > 0 {
				err = fmt.Errorf("%w: the module has a schedule: expected one that is not compiled yet", errMalformed)
			}
		case fieldOutputSharding, fieldParameterShardings, fieldDeviceAssignment, fieldAutoPartitioning, fieldModuleID:
			// Dropped: fields of many devices or of one compilation.
		default:
			m.rest = append(m.rest, f)
		}
		if err != nil {
			return nil, err
		}
	}
	if m.byID[m.entry] == nil {
		return nil, fmt.Errorf("%w: it has no entry computation (%d)", errMalformed, m.entry)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *module) parseComputation(message []byte) error {
	c := &computation{byID: map[int64]*instruction{}, in: m}
	fields, err := fieldsOf(message)
	for _, f := range fields {
		if err != nil {
			return err
		}
		var data []byte
		switch f.number {
		case fieldComputationName:
			data, err = f.bytes()
			c.name = string(data)
		case fieldComputationID:
			c.id, err = f.number64()
		case fieldRoot:
			c.root, err = f.number64()
		case fieldInstructions:
			if data, err = f.bytes(); err != nil {
				return err
			}
			var in *instruction
			if in, err = parseInstruction(data); err != nil {
				return err
			}
			if c.byID[in.id] != nil {
				return fmt.Errorf("%w: two instructions have the number %d", errMalformed, in.id)
			}
			c.last, c.instructions, c.byID[in.id] = max(c.last, in.id), append(c.instructions, in), in
		default:
			c.rest = append(c.rest, f)
		}
	}
	if err == nil && m.byID[c.id] != nil {
		err = fmt.Errorf("%w: two computations have the number %d", errMalformed, c.id)
	}
	m.computations, m.byID[c.id] = append(m.computations, c), c
	return err
}

func parseInstruction(message []byte) (*instruction, error) {
	in := &instruction{}
	fields, err := fieldsOf(message)
	for _, f := range fields {
		if err != nil {
			return nil, err
		}
		var data []byte
		switch f.number {
		case fieldName:
			data, err = f.bytes()
			in.name = string(data)
		case fieldOpcode:
			data, err = f.bytes()
			in.opcode = string(data)
		case fieldShape:
			if data, err = f.bytes(); err == nil {
				in.shape, err = parseShape(data, 0)
			}
		case fieldID:
			in.id, err = f.number64()
		case fieldOperands:
			in.operands, err = f.appendTo(in.operands)
		case fieldControl:
			in.control, err = f.appendTo(in.control)
		case fieldCalled:
			in.called, err = f.appendTo(in.called)
		case fieldChannel:
			in.channel, err = f.number64()
		case fieldSharding:
		default:
			in.rest = append(in.rest, f)
		}
	}
	return in, err
}

// Newer XLA puts the computation's id above 32 bits, older XLA numbers through the module.
func (m *module) check() error {
	own, last := true, int64(0)
	for _, c := range m.computations {
		seen := map[int64]bool{}
		if c.id < 0 || c.id >= 1<<31-1<<10 { // leaves ids for new computations
			return fmt.Errorf("%w: the computation %s has the number %d", errMalformed, c.name, c.id)
		}
		for _, in := range c.instructions {
			for _, id := range slices.Concat(in.operands, in.control) {
				if !seen[id] {
					return fmt.Errorf("%w: %s of %s has the operand %d, which does not come before it", errMalformed, in.name, c.name, id)
				}
			}
			for _, id := range in.called {
				if m.byID[id] == nil {
					return fmt.Errorf("%w: %s of %s calls the computation %d, which does not exist", errMalformed, in.name, c.name, id)
				}
			}
			if in.id < 0 {
				return fmt.Errorf("%w: %s of %s has the number %d", errMalformed, in.name, c.name, in.id)
			}
			seen[in.id] = true
			own, last = own && in.id>>32 == c.id, max(last, in.id)
		}
		if !seen[c.root] {
			return fmt.Errorf("%w: %s has no root %d", errMalformed, c.name, c.root)
		}
	}
	if !own {
		m.next = last + 1
		if last >= 1<<31 {
			return fmt.Errorf("%w: the numbering of instructions is not supported (%d)", errMalformed, last)
		}
	}
	return nil
}

func (c *computation) add(opcode, name string, s shape, operands []int64, extra []byte) *instruction {
	in := &instruction{opcode: opcode, shape: s, operands: operands, extra: extra}
	if c.in.next > 0 {
		in.id, c.in.next = c.in.next, c.in.next+1
	} else {
		in.id = max(c.id<<32, c.last+1)
	}
	in.name = fmt.Sprintf("%s.lazo.%d.%d", name, c.id, in.id&(1<<32-1)) // names are unique per module
	c.last, c.instructions, c.byID[in.id] = in.id, append(c.instructions, in), in
	return in
}

func (m *module) addComputation(name string) *computation {
	c := &computation{byID: map[int64]*instruction{}, in: m}
	for _, other := range m.computations {
		c.id = max(c.id, other.id+1)
	}
	c.name = fmt.Sprintf("%s.lazo.%d", name, c.id)
	m.computations, m.byID[c.id] = append(m.computations, c), c
	return c
}

func (in *instruction) find(number protowire.Number) (found field, ok bool) {
	for _, f := range in.rest {
		if f.number == number {
			found, ok = f, true
		}
	}
	return found, ok
}

func (in *instruction) numbers(number protowire.Number) (list []int64, err error) {
	for _, f := range in.rest {
		if f.number == number && err == nil {
			list, err = f.appendTo(list)
		}
	}
	return list, err
}

// become keeps id and name for users.
func (in *instruction) become(opcode string, operands []int64, extra []byte) {
	metadata, has := in.find(fieldMetadata)
	in.opcode, in.operands, in.extra = opcode, operands, extra
	in.rest, in.called, in.control, in.channel = nil, nil, nil, 0
	if has {
		in.rest = []field{metadata}
	}
}

func sorted[T any](list []T, uses func(T) []T, key func(T) int64, name func(T) string) ([]T, error) {
	const (
		begun = 1
		done  = 2
	)
	out, state := make([]T, 0, len(list)), make(map[int64]int, len(list))
	type visit struct {
		of   T
		left []T
	}
	for _, first := range list {
		if state[key(first)] == done {
			continue
		}
		state[key(first)] = begun
		stack := []visit{{first, uses(first)}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.left) == 0 {
				state[key(top.of)] = done
				out, stack = append(out, top.of), stack[:len(stack)-1]
				continue
			}
			next := top.left[0]
			top.left = top.left[1:]
			switch state[key(next)] {
			case begun:
				return nil, fmt.Errorf("%w: %s depends on itself", errMalformed, name(next))
			case 0:
				state[key(next)] = begun
				stack = append(stack, visit{next, uses(next)})
			}
		}
	}
	return out, nil
}

func (c *computation) sort() (err error) {
	c.instructions, err = sorted(c.instructions, func(in *instruction) (uses []*instruction) {
		for _, id := range slices.Concat(in.operands, in.control) {
			uses = append(uses, c.byID[id])
		}
		return uses
	}, func(in *instruction) int64 { return in.id }, func(in *instruction) string { return in.name })
	return err
}

func (m *module) sort() (err error) {
	m.computations, err = sorted(m.computations, func(c *computation) (uses []*computation) {
		for _, in := range c.instructions {
			for _, id := range in.called {
				uses = append(uses, m.byID[id])
			}
		}
		return uses
	}, func(c *computation) int64 { return c.id }, func(c *computation) string { return c.name })
	return err
}

func (m *module) marshal() []byte {
	var out []byte
	for _, f := range m.rest {
		out = append(out, f.raw...)
	}
	for _, c := range m.computations {
		out = appendBytes(out, fieldComputations, c.marshal())
	}
	return out
}

func (c *computation) marshal() []byte {
	out := appendBytes(nil, fieldComputationName, c.name)
	for _, in := range c.instructions {
		out = appendBytes(out, fieldInstructions, in.marshal())
	}
	for _, f := range c.rest {
		if f.number != fieldProgramShape {
			out = append(out, f.raw...)
		}
	}
	out = appendBytes(out, fieldProgramShape, c.programShape())
	out = appendNumber(out, fieldComputationID, c.id)
	return appendNumber(out, fieldRoot, c.root)
}

func (c *computation) programShape() (out []byte) {
	parameters := c.parameters()
	for _, p := range parameters {
		out = appendBytes(out, fieldParameters, p.shape.marshal())
	}
	out = appendBytes(out, fieldResult, c.byID[c.root].shape.marshal())
	for _, p := range parameters {
		out = appendBytes(out, fieldParameterNames, p.name)
	}
	return out
}

func (c *computation) parameters() (list []*instruction) {
	byNumber := map[int64]*instruction{}
	for _, in := range c.instructions {
		if in.opcode == "parameter" {
			byNumber[in.parameter()] = in
		}
	}
	for i := range int64(len(byNumber)) {
		if p := byNumber[i]; p != nil {
			list = append(list, p)
		}
	}
	return list
}

func (in *instruction) parameter() int64 {
	number, _ := in.find(fieldParameterNumber)
	if fields, err := fieldsOf(in.extra); err == nil {
		for _, f := range fields {
			if f.number == fieldParameterNumber {
				number = f
			}
		}
	}
	return int64(number.value)
}

func (in *instruction) marshal() []byte {
	out := appendBytes(nil, fieldName, in.name)
	out = appendBytes(out, fieldOpcode, in.opcode)
	out = appendBytes(out, fieldShape, in.shape.marshal())
	for _, f := range in.rest {
		out = append(out, f.raw...)
	}
	out = append(out, in.extra...)
	out = appendNumber(out, fieldID, in.id)
	out = appendNumbers(out, fieldOperands, in.operands)
	out = appendNumbers(out, fieldControl, in.control)
	out = appendNumbers(out, fieldCalled, in.called)
	if in.channel != 0 {
		out = appendNumber(out, fieldChannel, in.channel)
	}
	return out
}

// where returns " (dot.1, model.go:33)" from the metadata, or "".
func (m *module) where(in *instruction) string {
	data, _ := in.find(fieldMetadata)
	fields, err := fieldsOf(data.data)
	if err != nil {
		return ""
	}
	var op, file string
	var line int64
	for _, f := range fields {
		switch f.number {
		case fieldOpName:
			op = string(f.data)
		case fieldSourceFile:
			file = string(f.data)
		case fieldSourceLine:
			line = int64(f.value)
		case fieldFrame:
			if framed, at := m.frame(int64(f.value)); framed != "" {
				file, line = framed, at
			}
		}
	}
	if file != "" {
		file = fmt.Sprintf("%s:%d", file, line)
		if op != "" {
			file = ", " + file
		}
	}
	if op == "" && file == "" {
		return ""
	}
	return " (" + op + file + ")"
}

// frame numbers begin with 1.
func (m *module) frame(number int64) (file string, line int64) {
	at := func(message []byte, list protowire.Number, n int64) field {
		fields, err := fieldsOf(message)
		for _, f := range fields {
			if err == nil && f.number == list {
				if n--; n == 0 {
					return f
				}
			}
		}
		return field{}
	}
	value := func(message []byte, number protowire.Number) int64 { return int64(at(message, number, 1).value) }
	location := at(m.frames, fieldLocations, value(at(m.frames, fieldFrames, number).data, fieldLocation)).data
	return string(at(m.frames, fieldFileNames, value(location, fieldFileName)).data), value(location, fieldLine)
}
