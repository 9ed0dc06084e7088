package hlo

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// Error is an operation that a [Builder] refused.
type Error struct {
	Operation backends.OpType
	// Operands are the shapes of its operands; none where an operand is no value of the builder's.
	Operands []shapes.Shape
	Err      error
}

func (e *Error) Error() string {
	if len(e.Operands) == 0 {
		return fmt.Sprintf("hlo: %s: %v", e.Operation, e.Err)
	}
	return fmt.Sprintf("hlo: %s(%s): %v", e.Operation, shapeList(e.Operands), e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func shapeList(list []shapes.Shape) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}

// Operation is one of GoMLX's operations in a module.
type Operation struct {
	Kind              backends.OpType
	Operands, Outputs []shapes.Shape
	// Where is the line of the user's code that asked for it, as "package/file.go:12"; "" for what lazo adds, as gradients.
	Where string

	end int // the number of statements up to its last one
}

func (o Operation) String() string { return fmt.Sprintf("%s(%s)", o.Kind, shapeList(o.Operands)) }

// source is the text of a module's operations, and which of them wrote what. A module that runs another one many times
// has that one's.
type source struct {
	body       string
	operations []Operation
}

// noted keeps an operation that was written; end is the number of statements then.
func (b *Builder) noted(kind backends.OpType, operands, results []*value, end int) {
	b.written = append(b.written, Operation{kind, shapesOf(operands), shapesOf(results), b.places.Here(), end})
}

func shapesOf(values []*value) []shapes.Shape {
	list := make([]shapes.Shape, len(values))
	for i, v := range values {
		list[i] = shapeOf(v)
	}
	return list
}

var (
	// The plugin was given no name of a file, so it writes "-" for it.
	linePattern = regexp.MustCompile(`(?m)^-:(\d+):\d+: error`)
	codePattern = regexp.MustCompile("opcode `([a-z0-9-]+)`")
)

// Locate finds the operation that a plugin's words about the module's text are about: by the line that they name, or else
// as the only operation of the name that they give.
func (m *Module) Locate(words string) (Operation, bool) {
	s := m.source
	if s == nil || s.body == "" {
		return Operation{}, false
	}
	var lines []int // of the body
	if found := linePattern.FindStringSubmatch(words); found != nil {
		before, _, has := strings.Cut(m.Text(), s.body)
		n, err := strconv.Atoi(found[1])
		if n -= strings.Count(before, "\n") + 1; has && err == nil && n >= 0 {
			lines = []int{n}
		}
	} else if found := codePattern.FindStringSubmatch(words); found != nil {
		name := fmt.Sprintf("\"stablehlo.%s\"(", strings.ReplaceAll(found[1], "-", "_"))
		for i, line := range strings.Split(s.body, "\n") {
			if strings.Contains(line, name) {
				lines = append(lines, i)
			}
		}
	}
	var at []int
	for _, line := range lines {
		if i, ok := s.operationAt(line); ok && !slices.Contains(at, i) {
			at = append(at, i)
		}
	}
	if len(at) != 1 {
		return Operation{}, false
	}
	return s.operations[at[0]], true
}

// operationAt is the operation that wrote a line of the body.
func (s *source) operationAt(line int) (int, bool) {
	statements := 0
	lines := strings.Split(s.body, "\n")
	if line >= len(lines) {
		return 0, false
	}
	for _, text := range lines[:line+1] {
		// What lies deeper, or closes a bracket, belongs to the statement above it.
		if strings.HasPrefix(text, "    %") || strings.HasPrefix(text, `    "`) {
			statements++
		}
	}
	i := sort.Search(len(s.operations), func(i int) bool { return s.operations[i].end >= statements })
	return i, statements > 0 && i < len(s.operations)
}

// Largest are the n operations with the largest outputs, the largest first. Those of one kind and shapes count once.
func (m *Module) Largest(n int) []Operation {
	if m.source == nil {
		return nil
	}
	size := func(o Operation) (bytes uintptr) {
		for _, s := range o.Outputs {
			bytes += s.Memory()
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
