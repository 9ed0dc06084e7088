package optim

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Schedule is a function of the number of updates made so far, so 0 for the first one. It is computed inside of the
// program ([ScaleBySchedule]), so that it costs no compilation and runs in blocks of steps, and on the host
// ([Schedule.At]), to be plotted or printed: the same formula, in float32 there and float64 here. Beyond 16,777,216
// updates float32 no longer tells neighbours apart.
type Schedule struct {
	name  string
	value func(step number) number
	err   error
}

// String says what the schedule does, in words.
func (s Schedule) String() string { return s.name }

// Err says what is wrong with how the schedule was made, if something is. So does the training step that uses it.
func (s Schedule) Err() error {
	if s.value == nil && s.err == nil {
		return errors.New("optim: the schedule is empty: make it with Constant, Cosine, …")
	}
	return s.err
}

// At is the value for an update on the host; NaN where the schedule has an error.
func (s Schedule) At(update int64) float64 {
	if s.Err() != nil {
		return math.NaN()
	}
	return s.value(constant(float64(update))).host
}

// Node is the value for an update in a graph, a scalar of a type, from any integer or floating-point scalar.
func (s Schedule) Node(update *graph.Node, dtype dtypes.DType) *graph.Node {
	if err := s.Err(); err != nil {
		panic(err)
	}
	step := graph.ConvertDType(update, dtype)
	return s.value(number{node: step}).like(step)
}

// schedule makes a schedule; wrong says what is wrong with its settings, and is empty if nothing is.
func schedule(name, wrong string, value func(step number) number) Schedule {
	if wrong != "" {
		return Schedule{name: name, err: fmt.Errorf("optim: schedule %s: %s", name, wrong)}
	}
	return Schedule{name: name, value: value}
}

// wrong collects what is wrong with the settings of a schedule.
type wrong []string

func (w *wrong) steps(n int) {
	if n <= 0 {
		*w = append(*w, fmt.Sprintf("%d steps, expected 1 or more", n))
	}
}

func (w *wrong) finite(values ...float64) {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			*w = append(*w, fmt.Sprintf("the value %g, expected a finite one", v))
		}
	}
}

func (w *wrong) positive(what string, v float64) {
	if !(v > 0) || math.IsInf(v, 0) {
		*w = append(*w, fmt.Sprintf("%s %g, expected a positive, finite number", what, v))
	}
}

func (w wrong) String() string { return strings.Join(w, "; ") }

// Constant is always the same value.
func Constant(value float64) Schedule {
	var w wrong
	w.finite(value)
	return schedule(fmt.Sprintf("constant %g", value), w.String(), func(number) number { return constant(value) })
}

// Linear goes from one value to another in a straight line, and stays there.
func Linear(from, to float64, steps int) Schedule {
	s := Polynomial(from, to, 1, steps)
	s.name = fmt.Sprintf("linear %g to %g in %d", from, to, steps)
	return s
}

// Polynomial goes from one value to another as (1 - t/steps)^power, and stays there.
func Polynomial(from, to, power float64, steps int) Schedule {
	var w wrong
	w.finite(from, to)
	w.positive("the power", power)
	w.steps(steps)
	return schedule(fmt.Sprintf("polynomial %g to %g in %d, power %g", from, to, steps, power), w.String(), func(t number) number {
		// XLA divides by multiplying with the inverse, which at the end may give a little less than nothing.
		left := constant(1).minus(t.over(constant(float64(steps)))).atLeast(constant(0))
		if power != 1 {
			left = left.power(constant(power))
		}
		return constant(from - to).times(left).plus(constant(to))
	})
}

// ExponentialDecay is multiplied by a factor in so many steps, a little in each.
func ExponentialDecay(from, factor float64, steps int) Schedule {
	return exponential("exponential", from, factor, steps, number.over)
}

// StepDecay is multiplied by a factor after every so many steps, at once.
func StepDecay(from, factor float64, steps int) Schedule {
	return exponential("steps", from, factor, steps, number.whole)
}

func exponential(name string, from, factor float64, steps int, exponent func(t, steps number) number) Schedule {
	var w wrong
	w.finite(from)
	w.positive("the factor", factor)
	w.steps(steps)
	return schedule(fmt.Sprintf("%s from %g, ×%g in %d", name, from, factor, steps), w.String(), func(t number) number {
		return constant(from).times(constant(factor).power(exponent(t, constant(float64(steps)))))
	})
}

// Cosine falls from one value to another as half a wave, and stays there (Loshchilov and Hutter 2017).
func Cosine(from, to float64, steps int) Schedule {
	return cosine("cosine", from, to, steps, func(t, all number) number { return t.atMost(all).over(all) })
}

// CosineRestarts is [Cosine] that begins again and again (SGDR, in the same paper).
func CosineRestarts(from, to float64, steps int) Schedule {
	return cosine("cosine with restarts", from, to, steps, func(t, all number) number {
		return t.minus(t.whole(all).times(all)).over(all)
	})
}

func cosine(name string, from, to float64, steps int, part func(t, steps number) number) Schedule {
	var w wrong
	w.finite(from, to)
	w.steps(steps)
	return schedule(fmt.Sprintf("%s %g to %g in %d", name, from, to, steps), w.String(), func(t number) number {
		wave := constant(math.Pi).times(part(t, constant(float64(steps)))).cosine().plus(constant(1))
		return constant((from - to) / 2).times(wave).plus(constant(to))
	})
}

// OneCycle rises as half a wave from peak/25 to the peak in the first 30 percent of the steps, falls to peak/250,000 in
// the others and stays there (Smith and Topin 2018). Other shares are a [Cosine] and another one by [Schedule.Then].
func OneCycle(peak float64, steps int) Schedule {
	const share, first, last = 0.3, 25, 1e4
	up := int(share * float64(steps))
	if up == 0 || steps <= up {
		return schedule(fmt.Sprintf("one cycle to %g in %d", peak, steps), fmt.Sprintf("%d steps, expected 4 or more", steps), nil)
	}
	s := Cosine(peak/first, peak, up).Then(up, Cosine(peak, peak/(first*last), steps-up))
	s.name = fmt.Sprintf("one cycle to %g in %d", peak, steps)
	return s
}

// InverseSqrt falls as 1/√t: value·√(steps/(steps+t)), so that after a [Linear] from 0 in as many steps it is the
// schedule of the transformer (Vaswani et al. 2017): value·√(steps/t) with t counted from the start.
func InverseSqrt(from float64, steps int) Schedule {
	var w wrong
	w.finite(from)
	w.steps(steps)
	return schedule(fmt.Sprintf("inverse square root from %g with %d", from, steps), w.String(), func(t number) number {
		n := constant(float64(steps))
		return constant(from).times(n.over(n.plus(t)).power(constant(0.5)))
	})
}

// Then is the schedule for so many updates, and another one after it, which counts from its own beginning:
//
//	optim.Linear(0, 1, 500).Then(500, optim.Cosine(1, 0, 9500))
//
// The updates of a schedule that is itself made by Then are counted from its beginning.
func (s Schedule) Then(updates int, next Schedule) Schedule {
	var w wrong
	for i, part := range []Schedule{s, next} {
		if err := part.Err(); err != nil {
			w = append(w, fmt.Sprintf("part %d: %s", i+1, strings.TrimPrefix(err.Error(), "optim: ")))
		}
	}
	w.steps(updates)
	return schedule(fmt.Sprintf("%s for %d, then %s", s, updates, next), w.String(), func(t number) number {
		start := constant(float64(updates))
		// The second is computed before it begins, too, so it must not see a step from before its beginning.
		return t.whereBelow(start, s.value(t), next.value(t.minus(start).atLeast(constant(0))))
	})
}
