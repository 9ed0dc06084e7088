package checkpoint

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Retention says which checkpoints are worth keeping: [Last], [Lowest], [Highest], [EverySteps], [EveryTime]. Several
// of them in [Options.Keep] keep what any of them keeps.
//
// Each is a function of what is in the folder (step, time, metrics), so nothing of it is lost in a restart: Keras and
// Flax forget their best value, and then take the first one for the best.
type Retention struct {
	name string
	n    int64 // what must be positive
	last bool  // it is a Last
	mark func(list []Info, keep []bool)
	// entry is the metric that it goes by, if it does.
	entry    string
	byMetric bool
	sign     float64 // 1 where less is better, -1 where more is
	err      error
}

func (r Retention) String() string { return r.name }

// Metric is the name of the metric that it goes by, "" if it goes by none.
func (r Retention) Metric() string { return r.entry }

// Kept says for each checkpoint of a list in the order of steps whether it stays. The zero Retention, which [Open]
// refuses, keeps none.
func (r Retention) Kept(list []Info) []bool {
	keep := make([]bool, len(list))
	if r.check() == nil {
		r.mark(list, keep)
	}
	return keep
}

func (r Retention) check() error {
	switch {
	case r.err != nil:
		return r.err
	case r.mark == nil:
		return fmt.Errorf("a Retention without content; use Last, Lowest, Highest, EverySteps or EveryTime")
	case r.n < 1:
		return fmt.Errorf("%s: the number must be positive", r.name)
	case r.byMetric && r.entry == "":
		return fmt.Errorf("%s: the metric has no name", r.name)
	}
	return nil
}

// Last keeps the n newest, by their steps.
func Last(n int) Retention {
	return Retention{name: fmt.Sprintf("Last(%d)", n), n: int64(n), last: true, mark: func(list []Info, keep []bool) {
		for i := max(0, len(list)-n); i < len(list); i++ {
			keep[i] = true
		}
	}}
}

// Lowest keeps the k with the lowest values of a metric ([Content.Metrics]), for losses. Of equal values the earlier
// steps win. A checkpoint without the metric, or where it is not finite, is never among them.
func Lowest(k int, entry string) Retention { return best("Lowest", k, entry, 1) }

// Highest is [Lowest] for metrics where more is better, as accuracies.
func Highest(k int, entry string) Retention { return best("Highest", k, entry, -1) }

func best(name string, k int, entry string, sign float64) Retention {
	mark := func(list []Info, keep []bool) {
		var order []int
		value := func(i int) float64 { return sign * list[i].Metrics[entry] }
		for i := range list {
			if _, ok := list[i].Metrics[entry]; ok && !math.IsNaN(value(i)) && !math.IsInf(value(i), 0) {
				order = append(order, i)
			}
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(value(i), value(j)) })
		for _, i := range order[:min(k, len(order))] {
			keep[i] = true
		}
	}
	return Retention{name: fmt.Sprintf("%s(%d, %q)", name, k, entry), n: int64(k), mark: mark, entry: entry, byMetric: true, sign: sign}
}

// EverySteps keeps the first checkpoint in each stretch of n steps (0 to n-1, n to 2n-1, …): with checkpoints at
// multiples of n, all of them.
func EverySteps(n Step) Retention {
	return first(fmt.Sprintf("EverySteps(%d)", n), int64(n), func(i Info) int64 { return int64(i.Step / n) })
}

// EveryTime keeps the first checkpoint in each stretch of time of this length, by the clock at which it was saved; the
// stretches are counted from 1970, so 24 hours is a day of UTC.
func EveryTime(d time.Duration) Retention {
	return first(fmt.Sprintf("EveryTime(%v)", d), int64(d), func(i Info) int64 { return i.Time.UnixNano() / int64(d) })
}

func first(name string, n int64, stretch func(Info) int64) Retention {
	return Retention{name: name, n: n, mark: func(list []Info, keep []bool) {
		seen := map[int64]bool{}
		for i := range list {
			if s := stretch(list[i]); !seen[s] {
				seen[s], keep[i] = true, true
			}
		}
	}}
}

// kept marks what stays of a list in the order of steps. What one call keeps, the next one keeps too.
func kept(rules []Retention, list []Info) []bool {
	keep := make([]bool, len(list))
	for _, r := range rules {
		r.mark(list, keep)
	}
	if len(rules) == 0 {
		for i := range keep {
			keep[i] = true
		}
	}
	return keep
}
