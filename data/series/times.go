package series

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
)

// ranksOf numbers the distinct times in order.
func ranksOf(a data.Array) (ranks []int, times int, err error) {
	if flat, ok := a.Flat.([]uint64); ok {
		ranks, times = ranked(flat)
		return ranks, times, nil
	}
	if whole, err := arrays.Integers(a.Flat); err == nil {
		ranks, times = ranked(whole)
		return ranks, times, nil
	}
	if texts, ok := a.Flat.([]string); ok && len(texts) > 0 {
		if i := slices.Index(texts, ""); i >= 0 {
			return nil, 0, fmt.Errorf("row %d: the time is missing", i+1)
		}
		if _, err := dateOf(texts[0]); err == nil {
			dates := make([]int64, len(texts))
			for i, text := range texts {
				if dates[i], err = dateOf(text); err != nil {
					return nil, 0, fmt.Errorf("row %d: %w", i+1, err)
				}
			}
			ranks, times = ranked(dates)
			return ranks, times, nil
		}
	}
	values, err := numbersOf(a)
	if err != nil {
		return nil, 0, fmt.Errorf("%w, nor a date as 2026-01-31 or 2026-01-31 15:04:05", err)
	}
	if i := slices.IndexFunc(values, math.IsNaN); i >= 0 {
		return nil, 0, fmt.Errorf("row %d: the time is missing", i+1)
	}
	ranks, times = ranked(values)
	return ranks, times, nil
}

func ranked[T int64 | uint64 | float64](values []T) (ranks []int, times int) {
	distinct := slices.Clone(values)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	ranks = make([]int, len(values))
	for i, v := range values {
		ranks[i], _ = slices.BinarySearch(distinct, v)
	}
	return ranks, len(distinct)
}

// dateOf is in microseconds.
func dateOf(text string) (int64, error) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.DateOnly, time.DateTime, time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMicro(), nil
		}
	}
	return 0, fmt.Errorf("%s is not a date as 2026-01-31 or 2026-01-31 15:04:05", listed.Quoted(text))
}

// numbersOf has NaN for a missing value.
func numbersOf(a data.Array) ([]float64, error) {
	texts, ok := a.Flat.([]string)
	if !ok {
		values, ok := arrays.Floats(a.Flat)
		if !ok || a.DType() == "bool" {
			return nil, errors.New("it is " + a.DType() + ", not a number")
		}
		return values, nil
	}
	values := make([]float64, len(texts))
	for i, text := range texts {
		if text = strings.TrimSpace(text); text == "" {
			values[i] = math.NaN()
			continue
		}
		v, err := arrays.ParseFloat(text, 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("row %d: %s is not a number", i+1, listed.Quoted(text))
		}
		values[i] = v
	}
	return values, nil
}
