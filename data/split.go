package data

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/internal/arrays"
)

// SplitOption is an option of [Set.Split] and [Set.Folds]: [Stratified] or [Grouped].
type SplitOption func(*splitting)

type splitting struct{ by, field string }

// Stratified keeps each class's proportion on each side, rounded to whole examples, at least one. The field, [n] of
// integers, bools or texts, holds the class.
func Stratified(field string) SplitOption { return splitBy("stratified", field) }

// Grouped keeps a group's examples, like one patient's, on one side. The field is as in [Stratified].
func Grouped(field string) SplitOption { return splitBy("grouped", field) }

func splitBy(by, field string) SplitOption {
	return func(s *splitting) {
		if s.by != "" {
			by = s.by + " and " + by
		}
		*s = splitting{by, field}
	}
}

type classed struct {
	of    []int
	sizes []int
	names []string
}

func (s *Set) classed(options []SplitOption) (how splitting, by *classed, err error) {
	for _, option := range options {
		if option != nil {
			option(&how)
		}
	}
	if how.by == "" {
		return how, nil, nil
	}
	if how.by != "stratified" && how.by != "grouped" {
		return how, nil, errors.New("expected one data.Stratified or one data.Grouped")
	}
	f, err := find(s.fields, how.field, "the set")
	if err != nil {
		return how, nil, err
	}
	a := f.Array
	if len(a.Dims) == 1 {
		by = classesOf(a)
	}
	if by == nil {
		return how, nil, fmt.Errorf("field %q is %s %v, expected an integer, a truth value or a text for each example", how.field, a.DType(), a.Dims)
	}
	return how, by, nil
}

func classesOf(a Array) *classed {
	switch flat := a.Flat.(type) {
	case []string:
		return classesIn(flat, "%q")
	case []bool:
		return classesIn(flat, "%v")
	case []uint64:
		return classesIn(flat, "%v")
	}
	numbers, err := a.integers()
	if err != nil {
		return nil
	}
	return classesIn(numbers, "%v")
}

func classesIn[T comparable](values []T, format string) *classed {
	c, number := &classed{of: make([]int, len(values))}, map[T]int{}
	for i, v := range values {
		n, known := number[v]
		if !known {
			n = len(c.sizes)
			number[v], c.sizes, c.names = n, append(c.sizes, 0), append(c.names, fmt.Sprintf(format, v))
		}
		c.of[i] = n
		c.sizes[n]++
	}
	return c
}

// Split splits the examples at random into two nonempty copies. train receives this fraction of the examples, rounded
// down; with [Stratified] of each class, rounded to nearest; with [Grouped] as many groups as fit.
func (s *Set) Split(fraction float64, seed uint64, options ...SplitOption) (train, test *Set, err error) {
	how, by, err := s.classed(options)
	what := "split"
	if how.by != "" {
		what += " " + how.by
	}
	if err != nil {
		return nil, nil, fmt.Errorf("data: %s: %w", what, err)
	}
	if !(fraction > 0 && fraction < 1) {
		return nil, nil, fmt.Errorf("data: %s: the fraction is %v, expected one between 0 and 1", what, fraction)
	}
	rows := make([]int, s.len)
	arrays.Permute(rows, seed, splitEpoch)
	// 0.29 times 100 is 28.999999999999996.
	n := int(math.Floor(fraction*float64(s.len) + 1e-9))
	left := n
	switch how.by {
	case "":
	case "grouped":
		chosen, seen := make([]bool, len(by.sizes)), make([]bool, len(by.sizes))
		for _, r := range rows {
			g := by.of[r]
			if !seen[g] && by.sizes[g] <= left {
				chosen[g] = true
				left -= by.sizes[g]
			}
			seen[g] = true
		}
		return s.sides(what, fraction, rows, func(r int) bool { return chosen[by.of[r]] })
	default:
		for c, have := range by.sizes {
			if k := share(fraction, have); k == 0 || k == have {
				return nil, nil, fmt.Errorf("data: %s: class %s has %d examples: at the fraction %v one side would have none", what, by.names[c], have, fraction)
			}
		}
		dealt := make([]int, len(by.sizes))
		return s.sides(what, fraction, rows, func(r int) bool {
			c := by.of[r]
			dealt[c]++
			return dealt[c] <= share(fraction, by.sizes[c])
		})
	}
	return s.sides(what, fraction, rows, func(int) bool {
		left--
		return left >= 0
	})
}

func share(fraction float64, n int) int { return int(math.Floor(fraction*float64(n) + 0.5)) }

func (s *Set) sides(what string, fraction float64, rows []int, isTraining func(row int) bool) (train, test *Set, err error) {
	var left, right []int
	for _, r := range rows {
		if isTraining(r) {
			left = append(left, r)
		} else {
			right = append(right, r)
		}
	}
	if len(left) == 0 || len(right) == 0 {
		return nil, nil, fmt.Errorf("data: %s: %d examples at the fraction %v: one side would be empty", what, s.len, fraction)
	}
	return s.gather(left), s.gather(right), nil
}

// Fold is part of [Set.Folds] as test set, and the rest as training set, both copies.
type Fold struct {
	Train, Test *Set
	// TestRows are Test's indices, in order.
	TestRows []int
}

// Folds splits the examples at random into k parts, each the test set of one fold of a cross-validation. Sizes differ
// by at most one example; with [Stratified] also per class, of at least k examples; with [Grouped] by whole groups,
// at least k.
func (s *Set) Folds(k int, seed uint64, options ...SplitOption) iter.Seq2[Fold, error] {
	parts, rows, err := s.folds(k, seed, options)
	if err != nil {
		return failed[Fold](fmt.Errorf("data: %d folds: %w", k, err))
	}
	return func(yield func(Fold, error) bool) {
		for p := range k {
			var train, test []int
			for i, r := range rows {
				if parts[i] == p {
					test = append(test, r)
				} else {
					train = append(train, r)
				}
			}
			if !yield(Fold{s.gather(train), s.gather(test), test}, nil) {
				return
			}
		}
	}
}

func (s *Set) folds(k int, seed uint64, options []SplitOption) (parts, rows []int, err error) {
	how, by, err := s.classed(options)
	switch {
	case err != nil:
		return nil, nil, err
	case k < 2 || k > s.len:
		return nil, nil, fmt.Errorf("expected at least 2, and at most the number of examples, %d", s.len)
	}
	rows, parts = make([]int, s.len), make([]int, s.len)
	arrays.Permute(rows, seed, splitEpoch)
	switch how.by {
	case "":
		for i := range rows {
			parts[i] = i % k
		}
	case "stratified":
		next := make([]int, len(by.sizes)) // each class is a consecutive range
		for c, size := range by.sizes {
			if size < k {
				return nil, nil, fmt.Errorf("class %s has %d examples, expected one for each fold", by.names[c], size)
			}
			if c > 0 {
				next[c] = next[c-1] + by.sizes[c-1]
			}
		}
		for i, r := range rows {
			c := by.of[r]
			parts[i] = next[c] % k
			next[c]++
		}
	default:
		groups := len(by.sizes)
		if groups < k {
			return nil, nil, fmt.Errorf("field %q has %d groups, expected one for each fold", how.field, groups)
		}
		// The largest remaining group goes to the smallest part.
		order, part, sizes := make([]int, groups), make([]int, groups), make([]int, k)
		arrays.Permute(order, seed, splitEpoch)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(by.sizes[b], by.sizes[a]) })
		for _, g := range order {
			least := slices.Index(sizes, slices.Min(sizes))
			part[g] = least
			sizes[least] += by.sizes[g]
		}
		for i, r := range rows {
			parts[i] = part[by.of[r]]
		}
	}
	return parts, rows, nil
}
