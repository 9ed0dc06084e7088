package cost

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type memoryBuffer struct {
	of       *instruction
	shape    shape
	kind     string
	argument int
	bytes    float64
	last     int
}

// liveness models the compiler's assignment of memory in scheduled computations: the compiler reports only the amount.
type liveness struct {
	m     *module
	done  map[*computation]peak
	stack map[*computation]bool
}

// Arguments only of the entry.
type peak struct {
	bytes  float64
	values []*memoryBuffer
}

func (l *liveness) inner(i *instruction) (most peak, err error) {
	var attributes []string
	switch i.opcode {
	case "while":
		attributes = []string{"body", "condition"}
	case "conditional":
		attributes = []string{"branch_computations", "true_computation", "false_computation"}
	case "call":
		attributes = []string{"to_apply"}
	case "async-start":
		attributes = []string{"calls"}
	}
	for _, a := range attributes {
		called, err := l.m.called(i, a)
		if err != nil {
			return peak{}, err
		}
		for _, c := range called {
			p, err := l.computation(c, false)
			if err != nil {
				return peak{}, err
			}
			if p.bytes > most.bytes {
				most = p
			}
		}
	}
	return most, nil
}

func (l *liveness) computation(c *computation, entry bool) (peak, error) {
	if p, done := l.done[c]; done {
		return p, nil
	}
	if l.stack[c] || len(l.stack) > maxDepth*maxDepth {
		return peak{}, fmt.Errorf("computation %q calls itself, or is nested too deep", c.name)
	}
	l.stack[c] = true
	defer delete(l.stack, c)

	buffers, all, err := l.buffers(c, entry)
	if err != nil {
		return peak{}, err
	}
	place := make(map[*instruction]int, len(c.instructions))
	for at, i := range c.instructions {
		place[i] = at
		for _, b := range buffers[i] {
			b.last = max(b.last, at)
		}
		for _, o := range i.operands {
			for _, b := range buffers[o] {
				b.last = max(b.last, at)
			}
		}
	}
	for _, b := range buffers[c.root] {
		b.last = len(c.instructions)
		if entry && b.kind == kindTemporary {
			b.kind = kindOutput
		}
	}
	if entry {
		l.replaced(c, buffers)
	}
	ends := make([][]*memoryBuffer, len(c.instructions)+1)
	begins := make([][]*memoryBuffer, len(c.instructions))
	for _, b := range all {
		if b.bytes == 0 || !entry && b.kind == kindArgument {
			continue
		}
		at := 0
		if b.kind != kindArgument {
			at = place[b.of]
		}
		begins[at] = append(begins[at], b)
		if b.kind != kindArgument {
			ends[b.last] = append(ends[b.last], b)
		}
	}
	var best peak
	bestAt, use := 0, 0.0
	var within []*memoryBuffer
	for at, i := range c.instructions {
		for _, b := range begins[at] {
			use += b.bytes
		}
		inside, err := l.inner(i)
		if err != nil {
			return peak{}, err
		}
		if use+inside.bytes > best.bytes {
			best.bytes, bestAt, within = use+inside.bytes, at, inside.values
		}
		for _, b := range ends[at] {
			use -= b.bytes
		}
	}
	for _, b := range all {
		switch {
		case b.bytes == 0 || !entry && b.kind == kindArgument:
		case b.kind == kindArgument || place[b.of] <= bestAt && b.last >= bestAt:
			best.values = append(best.values, b)
		}
	}
	best.values = append(best.values, within...)
	l.done[c] = best
	return best, nil
}

func (l *liveness) replaced(c *computation, buffers map[*instruction][]*memoryBuffer) {
	outputs := buffers[c.root]
	for output, parameter := range l.m.aliased {
		if output < len(outputs) && parameter < len(c.parameters) && outputs[output].kind == kindOutput {
			outputs[output].bytes = 0
		}
	}
}

// Renamed and updated values share their operand's memory.
func (l *liveness) buffers(c *computation, entry bool) (map[*instruction][]*memoryBuffer, []*memoryBuffer, error) {
	of, all := make(map[*instruction][]*memoryBuffer, len(c.instructions)), []*memoryBuffer(nil)
	for _, i := range c.instructions {
		leaves := i.shape.leaves()
		list := make([]*memoryBuffer, len(leaves))
		taken := func(n int) []*memoryBuffer {
			if n < len(i.operands) {
				return of[i.operands[n]]
			}
			return nil
		}
		switch {
		case i.opcode == "tuple":
			list = nil
			for _, o := range i.operands {
				list = append(list, of[o]...)
			}
		case i.opcode == "get-tuple-element" && len(i.operands) == 1:
			index, err := strconv.Atoi(i.attributes["index"])
			parts := i.operands[0].shape.parts
			if err != nil || index < 0 || index >= len(parts) {
				return nil, nil, fmt.Errorf("instruction %q (line %d): element %q of %s", i.name, i.line, i.attributes["index"], i.operands[0].shape)
			}
			start := 0
			for _, p := range parts[:index] {
				start += len(p.leaves())
			}
			copy(list, part(taken(0), start, len(leaves)))
		case i.opcode == "bitcast", i.opcode == "while", i.opcode == "optimization-barrier", i.opcode == "opt-barrier", i.opcode == "dynamic-update-slice",
			i.opcode == "add-dependency", i.opcode == "scatter", i.opcode == "async-update":
			copy(list, taken(0))
		case i.opcode == "copy-done", i.opcode == "async-done" && len(i.operands) == 1 && !i.operands[0].shape.tuple:
			copy(list, taken(0))
		case strings.HasSuffix(i.opcode, "-done") && len(i.operands) == 1:
			// A start returns operands and results, or only results.
			if from := taken(0); i.operands[0].shape.tuple && len(i.operands[0].shape.parts) > 1 && !sameShape(i.operands[0].shape, i.shape) {
				copy(list, part(from, max(operandLeaves(i.operands[0]), len(i.operands[0].shape.parts[0].leaves())), len(leaves)))
			} else {
				copy(list, from)
			}
		case i.opcode == "copy-start" && len(list) > 1: // destination, source, context
			copy(list[1:], part(taken(0), 0, 1))
		case strings.HasSuffix(i.opcode, "-start") && operandLeaves(i) > 0: // operands, results, context
			at := 0
			for _, o := range i.operands {
				at += copy(list[at:], of[o])
			}
		case i.opcode == "fusion":
			if err := l.inPlace(i, list, of); err != nil {
				return nil, nil, err
			}
		}
		for n, s := range leaves {
			if n >= len(list) || list[n] != nil {
				continue
			}
			b := &memoryBuffer{of: i, shape: s, kind: kindTemporary, last: -1}
			if s.space == 0 {
				b.bytes = s.allocated()
			}
			if i.opcode == "parameter" {
				b.kind, b.argument = kindArgument, i.number
			}
			if i.opcode == "constant" || i.opcode == "after-all" {
				b.bytes = 0 // constants are stored with the program
			}
			list[n] = b
			all = append(all, b)
		}
		of[i] = list
	}
	return of, all, nil
}

func sameShape(a, b shape) bool { return a.String() == b.String() }

func part(list []*memoryBuffer, start, n int) []*memoryBuffer {
	if start > len(list) {
		return nil
	}
	return list[start:min(start+n, len(list))]
}

// Results that update or alias an operand share its memory.
func (l *liveness) inPlace(i *instruction, list []*memoryBuffer, of map[*instruction][]*memoryBuffer) error {
	called, err := l.m.called(i, "calls")
	if err != nil || len(called) != 1 {
		return err
	}
	for n, root := range roots(called[0].root) {
		if root.opcode != "dynamic-update-slice" || len(root.operands) == 0 || n >= len(list) {
			continue
		}
		into := root.operands[0]
		for d := 0; d < maxDepth && into.opcode == "bitcast" && len(into.operands) == 1; d++ {
			into = into.operands[0]
		}
		if into.opcode == "parameter" && into.number < len(i.operands) {
			if from := of[i.operands[into.number]]; len(from) == 1 {
				list[n] = from[0]
			}
		}
	}
	for _, m := range aliasPattern.FindAllStringSubmatch(i.attributes["output_to_operand_aliasing"], -1) {
		output, operand := 0, 0
		if m[1] != "" {
			if output, err = strconv.Atoi(m[1]); err != nil {
				continue
			}
		}
		if operand, err = strconv.Atoi(m[2]); err != nil || operand >= len(i.operands) || output >= len(list) || m[3] != "" {
			continue
		}
		if from := of[i.operands[operand]]; len(from) == 1 {
			list[output] = from[0]
		}
	}
	return nil
}

func (m *module) largest(n int) ([]Value, error) {
	l := &liveness{m: m, done: map[*computation]peak{}, stack: map[*computation]bool{}}
	p, err := l.computation(m.entry, true)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(p.values, func(a, b *memoryBuffer) int { return cmp.Compare(b.bytes, a.bytes) })
	var values []Value
	for _, b := range p.values[:min(n, len(p.values))] {
		at, operation := m.places.of(b.of)
		v := Value{Kind: b.kind, Name: b.of.name, Operation: operation, Shape: b.shape.String(), Bytes: int64(b.bytes), Where: at.String()}
		if b.kind == kindArgument {
			v.Argument = b.argument
		}
		if at.line > 0 && (at.file == "" || at.file == "-") {
			v.Line = at.line
		}
		values = append(values, v)
	}
	return values, nil
}
