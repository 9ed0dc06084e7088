package series

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Windows makes examples of consecutive rows of a table, within a group: a field [n, Length, …] of each column, and of
// each target a field [n, Horizon, …] of the rows that follow. A target that is a column too is named "next NAME". The
// fields Group and Time [n] are those of the last row before the targets. A tables.Preparation takes such examples.
type Windows struct {
	Length int
	// Horizon is the number of rows of targets, 1 if 0.
	Horizon int
	// Stride is the number of rows between the starts of examples, 1 if 0.
	Stride int
	// Columns are the inputs; empty means all but Group and Time.
	Columns []string
	Targets []string
	// Group names a column of integers, bools or texts with one value for each series.
	Group string
	// Time names a column of numbers, or of dates as 2026-01-31 or 2026-01-31 15:04:05, that ascends in each group;
	// gaps are not noticed. Without Time rows are in order.
	Time string
}

// Of returns all examples. A group that is too short has none.
func (w Windows) Of(table *data.Set) (*data.Set, error) {
	s, err := w.read(table)
	var set *data.Set
	if err == nil {
		set, err = s.examples(0, math.MaxInt)
	}
	return named(set, err, "windows")
}

// Split divides the examples by the time of their targets: for 0.6 and 0.2 the first part has the targets in the
// first 60 % of the distinct times, the second those of the next 20 %, the last the rest. Inputs of a later part reach
// back into earlier ones. Examples with targets in two parts are left out. Without Time a row's time is its place in
// its group.
func (w Windows) Split(table *data.Set, fractions ...float64) ([]*data.Set, error) {
	parts, err := w.split(table, fractions)
	if err != nil {
		return nil, fmt.Errorf("series: split: %w", err)
	}
	return parts, nil
}

// Last returns the inputs of one example for each group: its last Length rows, to predict the rows after the table.
func (w Windows) Last(table *data.Set) (*data.Set, error) {
	w.Targets = nil
	s, err := w.read(table)
	var set *data.Set
	if err == nil {
		set, err = s.last()
	}
	return named(set, err, "last windows")
}

func named(set *data.Set, err error, what string) (*data.Set, error) {
	if err != nil {
		return nil, fmt.Errorf("series: %s: %w", what, err)
	}
	return set, nil
}

// rows has a table's rows of each group, in order.
type rows struct {
	table  *data.Set
	groups [][]int
	ranks  []int
	times  int
}

type series struct {
	Windows
	rows
}

func (w Windows) read(table *data.Set) (s series, err error) {
	w.Horizon, w.Stride = cmp.Or(w.Horizon, 1), cmp.Or(w.Stride, 1)
	if w.Length < 1 || w.Horizon < 1 || w.Stride < 1 {
		return s, fmt.Errorf("the Length is %d, the Horizon %d and the Stride %d, expected at least 1", w.Length, w.Horizon, w.Stride)
	}
	if s.rows, err = readRows(table, w.Group, w.Time); err != nil {
		return s, err
	}
	if len(w.Columns) == 0 {
		for _, f := range table.Fields() {
			if f.Name != w.Group && f.Name != w.Time && f.Name != data.Mask {
				w.Columns = append(w.Columns, f.Name)
			}
		}
	}
	s.Windows = w
	return s, nil
}

func readRows(table *data.Set, group, time string) (r rows, err error) {
	if table == nil || table.Len() == 0 {
		return r, errors.New("the table has no rows")
	}
	if table.Mapped() {
		return r, errors.New("the table has functions of MapBatches, whose outputs it does not know: call this before MapBatches")
	}
	r.table = table
	if r.groups, err = groupsOf(table, group); err != nil {
		return r, err
	}
	if time == "" {
		r.ranks = make([]int, table.Len())
		for _, g := range r.groups {
			for i, row := range g {
				r.ranks[row] = i
			}
			r.times = max(r.times, len(g))
		}
		return r, nil
	}
	a, err := column(table, time)
	if err == nil {
		r.ranks, r.times, err = ranksOf(a)
	}
	if err != nil {
		return r, fmt.Errorf("the time %q: %w", time, err)
	}
	for _, g := range r.groups {
		for i := 1; i < len(g); i++ {
			if r.ranks[g[i]] <= r.ranks[g[i-1]] {
				return r, fmt.Errorf("row %d is not later than row %d by %q: sort the table by time, and name the column that separates its series in Group", g[i]+1, g[i-1]+1, time)
			}
		}
	}
	return r, nil
}

func field(table *data.Set, name string) (data.Array, error) {
	var names []string
	for _, f := range table.Fields() {
		if f.Name == name {
			return f.Array, nil
		}
		names = append(names, f.Name)
	}
	return data.Array{}, fmt.Errorf("the table has no column %q; there are %s", name, listed.Some(names))
}

func column(table *data.Set, name string) (data.Array, error) {
	a, err := field(table, name)
	if err == nil && len(a.Dims) != 1 {
		err = fmt.Errorf("column %q is %s %v, expected one value for each row, [n]", name, a.DType(), a.Dims)
	}
	return a, err
}

func groupsOf(table *data.Set, name string) ([][]int, error) {
	if name == "" {
		all := make([]int, table.Len())
		for i := range all {
			all[i] = i
		}
		return [][]int{all}, nil
	}
	a, err := column(table, name)
	if err != nil {
		return nil, err
	}
	switch flat := a.Flat.(type) {
	case []string:
		return grouped(flat), nil
	case []bool:
		return grouped(flat), nil
	case []uint64:
		return grouped(flat), nil
	}
	whole, err := arrays.Integers(a.Flat)
	if err != nil {
		return nil, fmt.Errorf("the group %q is %s, expected integers, bools or texts", name, a.DType())
	}
	return grouped(whole), nil
}

func grouped[T comparable](values []T) (groups [][]int) {
	number := map[T]int{}
	for i, v := range values {
		n, known := number[v]
		if !known {
			n = len(groups)
			number[v], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// examples returns those whose targets have ranks from first to before end.
func (s series) examples(first, end int) (*data.Set, error) {
	if len(s.Targets) == 0 {
		return nil, errors.New("the Targets are empty, expected the columns to predict")
	}
	var inputs, targets, last []int
	for _, g := range s.groups {
		for i := 0; i+s.Length+s.Horizon <= len(g); i += s.Stride {
			in, out := g[i:i+s.Length], g[i+s.Length:i+s.Length+s.Horizon]
			if s.ranks[out[0]] >= first && s.ranks[out[len(out)-1]] < end {
				inputs, targets, last = append(inputs, in...), append(targets, out...), append(last, in[len(in)-1])
			}
		}
	}
	if len(last) == 0 {
		return nil, fmt.Errorf("%d rows in %d series have no example of %d rows and %d targets", s.table.Len(), len(s.groups), s.Length, s.Horizon)
	}
	return s.gather(inputs, targets, last)
}

func (s series) last() (*data.Set, error) {
	var inputs, last []int
	for _, g := range s.groups {
		if len(g) < s.Length {
			return nil, fmt.Errorf("the series that begins in row %d has %d rows, expected at least %d", g[0]+1, len(g), s.Length)
		}
		inputs, last = append(inputs, g[len(g)-s.Length:]...), append(last, g[len(g)-1])
	}
	return s.gather(inputs, nil, last)
}

func (s series) gather(inputs, targets, last []int) (*data.Set, error) {
	var fields []data.Field
	add := func(name, as string, rows []int, length int) error {
		a, err := field(s.table, name)
		if err != nil {
			return err
		}
		dims := append([]int{len(last), length}, a.Dims[1:]...)
		if _, ok := arrays.Size(dims...); !ok {
			return fmt.Errorf("column %q of the windows would be %v: %w", name, dims, data.ErrLimit)
		}
		fields = append(fields, data.Named(as, a.Gather(rows).Flat, dims...))
		return nil
	}
	for _, name := range s.Columns {
		if err := add(name, name, inputs, s.Length); err != nil {
			return nil, err
		}
	}
	for _, name := range s.Targets {
		as := name
		if slices.Contains(s.Columns, name) {
			as = "next " + name
		}
		if err := add(name, as, targets, s.Horizon); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{s.Group, s.Time} {
		if name == "" || slices.Contains(s.Columns, name) {
			continue
		}
		a, err := field(s.table, name)
		if err != nil {
			return nil, err
		}
		fields = append(fields, data.Field{Name: name, Array: a.Gather(last)})
	}
	return data.New(fields...)
}

func (w Windows) split(table *data.Set, fractions []float64) (parts []*data.Set, err error) {
	sum := 0.0
	for _, f := range fractions {
		if sum += f; !(f > 0 && sum < 1) {
			return nil, fmt.Errorf("the fractions are %v, expected positive ones with a sum below 1", fractions)
		}
	}
	s, err := w.read(table)
	if err != nil {
		return nil, err
	}
	from, sum := 0, 0.0
	for i := range len(fractions) + 1 {
		end := s.times
		if i < len(fractions) {
			sum += fractions[i]
			end = int(math.Floor(sum*float64(s.times) + 1e-9)) // 0.29 times 100 is 28.999999999999996
		}
		part, err := s.examples(from, end)
		if err != nil {
			return nil, fmt.Errorf("part %d of %d, times %d to %d of %d: %w", i+1, len(fractions)+1, from+1, end, s.times, err)
		}
		parts, from = append(parts, part), end
	}
	return parts, nil
}
