package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// Aspect is what two states have different about a variable.
type Aspect string

// The aspects in which variables can differ.
const (
	Missing        Aspect = "missing" // only the first state has it
	Extra          Aspect = "extra"   // only the second state has it
	ShapeDiffers   Aspect = "shape"
	DTypeDiffers   Aspect = "dtype"
	TrainedDiffers Aspect = "trainable"
	ValuesDiffer   Aspect = "values"
)

// Discrepancy is one variable that is not the same in two states, in one aspect.
type Discrepancy struct {
	Name   string // in full: "/dense/weights"
	Aspect Aspect
	// A and B are what the states have, as text: "(Float32)[4, 3]" of a missing or extra variable, "[4 3]", "Float32",
	// "true".
	A, B string
	// Count is how many numbers differ, Of how many there are, Largest the largest difference of two (infinite or NaN
	// where one of them is); for ValuesDiffer.
	Count, Of int64
	Largest   float64
}

// Diff are sorted by name. They are nil, and print nothing, where two states are the same.
type Diff []Discrepancy

// String is a line for each difference.
func (d Diff) String() string {
	var t table
	for _, x := range d {
		text := strings.TrimSpace(x.A + " " + x.B) // one of them is empty
		switch x.Aspect {
		case ShapeDiffers, DTypeDiffers, TrainedDiffers:
			text = x.A + " and " + x.B
		case ValuesDiffer:
			text = fmt.Sprintf("%s of %s numbers differ, by up to %.3g", grouped(x.Count), grouped(x.Of), x.Largest)
		}
		t = append(t, []string{string(x.Aspect), x.Name, text})
	}
	if t == nil {
		return ""
	}
	return t.String()
}

// Compare says what is different between the variables of two states: names, shapes, dtypes, and which are trainable.
// It looks at no value. Nil means that they are the same, so that the values of one could be those of the other.
func Compare(a, b *State) Diff {
	var all Diff
	ofA, ofB := a.byName(), b.byName()
	for _, name := range slices.Sorted(maps.Keys(ofA)) {
		x, y := ofA[name], ofB[name]
		if y == nil {
			all = append(all, Discrepancy{Name: name, Aspect: Missing, A: x.shape.String()})
			continue
		}
		differ := func(what Aspect, a, b any) {
			if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
				all = append(all, Discrepancy{Name: name, Aspect: what, A: x, B: y})
			}
		}
		differ(ShapeDiffers, x.shape.Dimensions, y.shape.Dimensions)
		differ(DTypeDiffers, x.shape.DType, y.shape.DType)
		differ(TrainedDiffers, x.trained, y.trained)
	}
	for name, y := range ofB {
		if ofA[name] == nil {
			all = append(all, Discrepancy{Name: name, Aspect: Extra, B: y.shape.String()})
		}
	}
	slices.SortStableFunc(all, func(x, y Discrepancy) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// CompareValues is Compare with the values too, copied to the host one variable at a time, when the steps that were
// begun are over. Floating-point numbers may be apart by the tolerance, with 0 by nothing; all others, as counters and
// the random state, must be equal. NaN equals NaN.
func CompareValues(ctx context.Context, a, b *State, tolerance float64) (Diff, error) {
	if !(tolerance >= 0) {
		return nil, fmt.Errorf("managed: compare: the tolerance is %g, expected 0 or more", tolerance)
	}
	if a == nil || b == nil {
		return nil, errors.New("managed: compare: a state is nil: make one with New")
	}
	all := Compare(a, b)
	other := b.byName()
	mine := a.byName()
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if y := other[name]; y == nil || !y.shape.Equal(mine[name].shape) {
			continue
		}
		d, err := compareValue(ctx, a, b, name, tolerance)
		if err != nil {
			return nil, fmt.Errorf("managed: compare: %w", graphs.Inner(err)) // a value's names it
		}
		if d.Count > 0 {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(x, y Discrepancy) int { return strings.Compare(x.Name, y.Name) })
	return all, nil
}

func compareValue(ctx context.Context, a, b *State, name string, tolerance float64) (Discrepancy, error) {
	d := Discrepancy{Name: name, Aspect: ValuesDiffer, Largest: math.NaN()}
	if err := context.Cause(ctx); err != nil {
		return d, err
	}
	x, err := a.Value(name)
	if err != nil {
		return d, err
	}
	y, err := b.Value(name)
	if err != nil {
		return d, err
	}
	d.Of = int64(x.Shape().Size())
	var cause error
	err = x.ConstFlatData(func(ofX any) {
		var n numbers
		if n, cause = numbersOf(ofX); cause == nil {
			cause = y.ConstFlatData(func(ofY any) { d.Count, d.Largest = n.apart(ofY, tolerance) })
		}
	})
	return d, errors.Join(err, cause)
}

// about is what is known of a variable without its value.
type about struct {
	shape   Shape
	trained bool
}

// byName are the state's variables; a state that is nil has none.
func (s *State) byName() map[string]*about {
	if s == nil {
		return nil
	}
	defer s.values.PeekAll()()
	all := make(map[string]*about, s.values.Len())
	for i, v := range s.values.Variables() {
		all[v.Path()] = &about{s.values.Shape(i), v.Trainable}
	}
	return all
}
