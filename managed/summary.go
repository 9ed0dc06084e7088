package managed

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/managed/internal/store"
)

// Summary describes variables.
type Summary struct {
	Rows    []Row
	Moments bool
}

// Row is a variable.
type Row struct {
	Layer, Name string
	Kind        Kind
	Shape       shapes.Shape
	// Size is the number of elements, Bytes those of one copy; under data parallel each device may have one.
	Size, Bytes int64
	// Mean and Std (population) need Moments; NaN without elements or for complex numbers.
	Mean, Std float64
}

// Kind is a variable's purpose.
type Kind int

const (
	Parameter Kind = iota
	// Fixed is not trained: batch normalization statistics, custom variables.
	Fixed
	// OptimizerState is a moment, learning rate or counter.
	OptimizerState
	MetricState
	RandomState

	kinds = iota
)

// String returns a kind's name.
func (k Kind) String() string {
	names := [kinds]string{"trainable", "not trainable", "optimizer", "metric", "random"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// Summary lists the variables by kind, layer and name, without reading values; none before the first step or
// [Stepper.Prepare].
func (s *State) Summary() Summary {
	var sum Summary
	defer s.values.PeekAll()()
	for i, v := range s.values.Variables() {
		shape := s.values.Shape(i)
		if s.values.Packs(i) {
			shape = shapes.Make(shape.DType)
		}
		for _, path := range s.values.NamesOf(i) {
			layer, name := model.SplitPath(path)
			sum.Rows = append(sum.Rows, Row{Layer: layer, Name: name, Kind: s.kind(v), Shape: shape,
				Size: int64(shape.Size()), Bytes: shape.ByteSize()})
		}
	}
	slices.SortFunc(sum.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Name, b.Name))
	})
	return sum
}

func (s *State) kind(v *model.Variable) Kind {
	_, metric := s.model.resets[v]
	switch {
	case v.Trainable:
		return Parameter
	case metric:
		return MetricState
	case s.model.ofOptimizer[v]:
		return OptimizerState
	case v.Path() == store.RandomName:
		return RandomState
	}
	return Fixed
}

// SummaryOfValues adds means and standard deviations. It waits for started steps and copies the variables to the host
// in turn.
func (s *State) SummaryOfValues(ctx context.Context) (Summary, error) {
	sum := s.Summary()
	sum.Moments = true
	for i := range sum.Rows {
		row := &sum.Rows[i]
		name := model.JoinPath(row.Layer, row.Name)
		err := context.Cause(ctx)
		var t *tensors.Tensor
		if err == nil {
			t, err = s.Value(name)
		}
		if err == nil {
			err = t.ConstFlatData(func(flat any) {
				row.Mean, row.Std = math.NaN(), math.NaN()
				if n, err := numbersOf(flat); err == nil {
					row.Mean, row.Std = n.moments()
				}
			})
		}
		if err != nil {
			return Summary{}, fmt.Errorf("managed: summary: %w", graphs.Inner(err))
		}
	}
	return sum, nil
}

// Total is a sum over variables.
type Total struct{ Variables, Size, Bytes int64 }

// Total sums the rows of the given kinds, by default all.
func (s Summary) Total(of ...Kind) Total {
	var t Total
	for _, r := range s.Rows {
		if len(of) == 0 || slices.Contains(of, r.Kind) {
			t = Total{t.Variables + 1, t.Size + r.Size, t.Bytes + r.Bytes}
		}
	}
	return t
}

// String returns the whole table.
func (s Summary) String() string { return s.Table(len(s.Rows)) }

// Table returns the first rows and the totals of all.
func (s Summary) Table(rows int) string {
	t := table{{"layer", "variable", "shape", "dtype", ">size", ">bytes", "kind"}}
	if s.Moments {
		t[0] = append(t[0], ">mean", ">std")
	}
	shown := min(max(rows, 0), len(s.Rows))
	for i, r := range s.Rows[:shown] {
		layer := r.Layer
		if i > 0 && layer == s.Rows[i-1].Layer && r.Kind == s.Rows[i-1].Kind {
			layer = ""
		}
		line := []string{layer, r.Name, fmt.Sprint(r.Shape.Dimensions), r.Shape.DType.String(), grouped(r.Size), grouped(r.Bytes), r.Kind.String()}
		if s.Moments {
			line = append(line, strconv.FormatFloat(r.Mean, 'g', 3, 64), strconv.FormatFloat(r.Std, 'g', 3, 64))
		}
		t = append(t, line)
	}
	text := t.String()
	if more := len(s.Rows) - shown; more > 0 {
		text += fmt.Sprintf("… %s more\n", grouped(int64(more)))
	}
	totals := table{{"total", ">variables", ">size", ">bytes"}}
	line := func(name string, of Total) {
		totals = append(totals, []string{name, grouped(of.Variables), grouped(of.Size), grouped(of.Bytes)})
	}
	for k := range Kind(kinds) {
		if of := s.Total(k); of.Variables > 0 {
			line(k.String(), of)
		}
	}
	line("all", s.Total())
	return text + "\n" + totals.String()
}

type table [][]string

func (t table) String() string {
	widths, right := make([]int, len(t[0])), make([]bool, len(t[0]))
	for i, title := range t[0] {
		title, right[i] = strings.CutPrefix(title, ">")
		t[0][i] = title
		for _, row := range t {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var all strings.Builder
	for _, row := range t {
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				line.WriteString(space + cell + "  ")
			} else {
				line.WriteString(cell + space + "  ")
			}
		}
		all.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return all.String()
}

func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
