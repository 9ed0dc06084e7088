package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/loop"
)

// Retention is a rule: a checkpoint stays if at least one field selects it.
//
//	checkpoint.Retention{Last: 3, Best: 2, Metric: "loss_test"}
type Retention struct {
	Last int
	// EverySteps keeps the first checkpoint in each interval of n steps: 0 to n-1, n to 2n-1, and so on.
	EverySteps Step
	// EveryTime is EverySteps by the save's time since 1970, UTC.
	EveryTime time.Duration
	// Best keeps the n best by finite Metric ([Content.Metrics]), of equal ones the earlier.
	Best   int
	Metric string
	// Mode is whether lower or higher is better. Zero decides by the name.
	Mode loop.Mode
}

func (r Retention) String() string {
	var fields []string
	add := func(name string, x any, set bool) {
		if set {
			fields = append(fields, fmt.Sprintf("%s: %v", name, x))
		}
	}
	add("Last", r.Last, r.Last != 0)
	add("EverySteps", int64(r.EverySteps), r.EverySteps != 0)
	add("EveryTime", r.EveryTime, r.EveryTime != 0)
	add("Best", r.Best, r.Best != 0)
	add("Metric", fmt.Sprintf("%q", r.Metric), r.Metric != "")
	add("Mode", r.Mode, r.Mode != 0)
	return "{" + strings.Join(fields, ", ") + "}"
}

// Kept reports which checkpoints of a list sorted by step are kept, none for an invalid rule.
func (r Retention) Kept(list []Info) []bool {
	keep := make([]bool, len(list))
	if r.check() != nil {
		return keep
	}
	for i := max(0, len(list)-r.Last); i < len(list); i++ {
		keep[i] = true
	}
	if r.EverySteps > 0 {
		first(list, keep, func(i Info) int64 { return int64(i.Step / r.EverySteps) })
	}
	if r.EveryTime > 0 {
		first(list, keep, func(i Info) int64 { return i.Time.UnixNano() / int64(r.EveryTime) })
	}
	if r.Best > 0 {
		r.markBest(list, keep)
	}
	return keep
}

func first(list []Info, keep []bool, stretch func(Info) int64) {
	seen := map[int64]bool{}
	for i := range list {
		if s := stretch(list[i]); !seen[s] {
			seen[s], keep[i] = true, true
		}
	}
}

func (r Retention) markBest(list []Info, keep []bool) {
	mode, err := better.Of(r.Mode, r.Metric)
	if err != nil {
		return
	}
	sign := 1.0
	if mode == loop.Highest {
		sign = -1
	}
	var order []int
	value := func(i int) float64 { return sign * list[i].Metrics[r.Metric] }
	for i := range list {
		if _, ok := list[i].Metrics[r.Metric]; ok && !math.IsNaN(value(i)) && !math.IsInf(value(i), 0) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(value(i), value(j)) })
	for _, i := range order[:min(r.Best, len(order))] {
		keep[i] = true
	}
}

func (r Retention) check() error {
	switch {
	case r.Last < 0 || r.EverySteps < 0 || r.EveryTime < 0 || r.Best < 0:
		return fmt.Errorf("%v: the numbers must not be negative", r)
	case r.Best == 0 && (r.Metric != "" || r.Mode != 0):
		return fmt.Errorf("%v: Metric or Mode is set, but not Best: set Best to the number of checkpoints to keep, for example 1", r)
	case r.Best == 0 && r.Last == 0 && r.EverySteps == 0 && r.EveryTime == 0:
		return errors.New("a Retention without content keeps nothing: set Last, EverySteps, EveryTime, or Best and Metric")
	case r.Best == 0:
		return nil
	case r.Metric == "":
		return fmt.Errorf("%v: the metric has no name", r)
	}
	if _, err := better.Of(r.Mode, r.Metric); err != nil {
		return fmt.Errorf("%v: %w: set Mode to loop.Lowest or loop.Highest", r, err)
	}
	return nil
}

func (r Retention) best() Retention { return Retention{Best: r.Best, Metric: r.Metric, Mode: r.Mode} }

func kept(rules []Retention, list []Info) []bool {
	keep := make([]bool, len(list))
	for _, r := range rules {
		for i, k := range r.Kept(list) {
			keep[i] = keep[i] || k
		}
	}
	if len(rules) == 0 {
		for i := range keep {
			keep[i] = true
		}
	}
	return keep
}
