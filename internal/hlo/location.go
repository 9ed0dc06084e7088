package hlo

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

type Error struct {
	Operation compute.OpType
	Operands  []shapes.Shape
	Err       error
}

func (e *Error) Error() string {
	if len(e.Operands) == 0 {
		return fmt.Sprintf("hlo: %s: %v", e.Operation, e.Err)
	}
	return fmt.Sprintf("hlo: %s(%s): %v", e.Operation, shapeList(e.Operands), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func shapeList(list []shapes.Shape) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}

type Operation struct {
	Kind              compute.OpType
	Operands, Outputs []shapes.Shape
	// Where is the user's line, "package/file.go:12", or "" for lazo's own operations, like gradients.
	Where string

	end int // number after its last value
}

func (o Operation) String() string { return fmt.Sprintf("%s(%s)", o.Kind, shapeList(o.Operands)) }

type written struct {
	Operation
	in *Function
}

func (f *Function) noted(kind compute.OpType, operands, results []*value) {
	b := f.b
	if n := len(f.text.Statements); n > 0 {
		outputs := f.text.Statements[n-1].Outputs
		if number, err := strconv.Atoi(outputs[len(outputs)-1].String()[1:]); err == nil {
			b.numbers = max(b.numbers, number+1)
		}
	}
	b.written = append(b.written, written{Operation{kind, shapesOf(operands), shapesOf(results), b.places.Here(), b.numbers}, f})
}

func shapesOf(values []*value) []shapes.Shape {
	list := make([]shapes.Shape, len(values))
	for i, v := range values {
		list[i] = shapeOf(v)
	}
	return list
}

var (
	// The plugin writes "-" for the file name.
	linePattern  = regexp.MustCompile(`(?m)^-:(\d+):\d+: error`)
	valuePattern = regexp.MustCompile(`^ *%(\d+)[ ,]`)
	codePattern  = regexp.MustCompile("opcode `([a-z0-9-]+)`")
)

// Locate finds the operation of a plugin's error message by its line, or by an opcode of only one operation.
func (m *Module) Locate(words string) (Operation, bool) {
	s := m.source
	if s == nil {
		return Operation{}, false
	}
	var at []int
	found := func(body string, line int) {
		if i, ok := s.operationAt(body, line); ok && !slices.Contains(at, i) {
			at = append(at, i)
		}
	}
	if place := linePattern.FindStringSubmatch(words); place != nil {
		line, err := strconv.Atoi(place[1])
		text := m.Text()
		for _, body := range s.bodies {
			before, _, has := strings.Cut(text, body)
			if n := line - strings.Count(before, "\n") - 1; has && err == nil && n >= 0 && n < strings.Count(body, "\n") {
				found(body, n)
			}
		}
	} else if code := codePattern.FindStringSubmatch(words); code != nil {
		name := fmt.Sprintf("\"stablehlo.%s\"(", strings.ReplaceAll(code[1], "-", "_"))
		for _, body := range s.bodies {
			for i, line := range strings.Split(body, "\n") {
				if strings.Contains(line, name) {
					found(body, i)
				}
			}
		}
	}
	if len(at) != 1 {
		return Operation{}, false
	}
	return s.operations[at[0]], true
}

// Lines maps the lines of [Module.Text], from 1, to operations. A line without a value belongs to the statement above
// it.
func (m *Module) Lines() map[int]Operation {
	if m.source == nil {
		return nil
	}
	text, all := m.Text(), map[int]Operation{}
	for _, body := range m.source.bodies {
		before, _, found := strings.Cut(text, body)
		if !found {
			continue
		}
		at, line := -1, strings.Count(before, "\n")
		for statement := range strings.Lines(body) {
			line++
			if value := valuePattern.FindStringSubmatch(statement); value != nil {
				at = -1
				if number, err := strconv.Atoi(value[1]); err == nil {
					at = sort.Search(len(m.source.operations), func(i int) bool { return m.source.operations[i].end > number })
				}
			}
			if at >= 0 && at < len(m.source.operations) {
				all[line] = m.source.operations[at]
			}
		}
	}
	return all
}

func (s *source) operationAt(body string, line int) (int, bool) {
	lines := strings.Split(body, "\n")
	for ; line >= 0; line-- {
		found := valuePattern.FindStringSubmatch(lines[line])
		if found == nil {
			continue
		}
		number, err := strconv.Atoi(found[1])
		i := sort.Search(len(s.operations), func(i int) bool { return s.operations[i].end > number })
		return i, err == nil && i < len(s.operations)
	}
	return 0, false
}

// Largest returns up to n operations with the largest outputs, largest first. Adjacent ones of equal kind, operand
// shapes and line count once.
func (m *Module) Largest(n int) []Operation {
	if m.source == nil {
		return nil
	}
	size := func(o Operation) (bytes int64) {
		for _, s := range o.Outputs {
			bytes += s.ByteSize()
		}
		return bytes
	}
	list := slices.Clone(m.source.operations)
	slices.SortStableFunc(list, func(a, b Operation) int {
		switch x, y := size(a), size(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	list = slices.CompactFunc(list, func(a, b Operation) bool { return a.String() == b.String() && a.Where == b.Where })
	return list[:min(n, len(list))]
}
