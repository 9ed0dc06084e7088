package optim

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Schedule is a function of the number of earlier updates. Programs compute it ([ScaleBySchedule]) in float32 or
// float64, the host ([Schedule.At]) in float64. float32 does not distinguish adjacent updates above 16,777,216.
type Schedule struct {
	name  string
	value func(step number) number
	err   error
}

// String describes the schedule.
func (s Schedule) String() string { return s.name }

// Err returns an error if the settings are invalid, as does a training step with the schedule.
func (s Schedule) Err() error {
	if s.value == nil && s.err == nil {
		return errors.New("optim: the schedule is empty: make it with Constant, Cosine, …")
	}
	return s.err
}

// At returns the value for an update on the host, or NaN after an error.
func (s Schedule) At(update int64) float64 {
	if s.Err() != nil {
		return math.NaN()
	}
	return s.value(constant(float64(update))).host
}

// Node returns the value for an update in a graph, a scalar of the dtype. update is an integer or floating-point
// scalar.
func (s Schedule) Node(update *graph.Node, dtype dtypes.DType) *graph.Node {
	if err := s.Err(); err != nil {
		panic(err)
	}
	step := graph.ConvertDType(update, dtype)
	return s.value(number{node: step}).like(step)
}

func schedule(name, wrong string, value func(step number) number) Schedule {
	if wrong != "" {
		return Schedule{name: name, err: fmt.Errorf("optim: schedule %s: %s", name, wrong)}
	}
	return Schedule{name: name, value: value}
}

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

// Constant always has the same value.
func Constant(value float64) Schedule {
	var w wrong
	w.finite(value)
	return schedule(fmt.Sprintf("constant %g", value), w.String(), func(number) number { return constant(value) })
}

// Linear changes linearly over the steps, then stays constant.
func Linear(from, to float64, steps int) Schedule {
	s := Polynomial(from, to, 1, steps)
	s.name = fmt.Sprintf("linear %g to %g in %d", from, to, steps)
	return s
}

// Polynomial changes as (1 - t/steps)^power, then stays constant.
func Polynomial(from, to, power float64, steps int) Schedule {
	var w wrong
	w.finite(from, to)
	w.positive("the power", power)
	w.steps(steps)
	return schedule(fmt.Sprintf("polynomial %g to %g in %d, power %g", from, to, steps, power), w.String(), func(t number) number {
		// XLA multiplies with the inverse: this may be slightly negative at the end.
		left := constant(1).minus(t.over(constant(float64(steps)))).atLeast(constant(0))
		if power != 1 {
			left = left.power(constant(power))
		}
		return constant(from - to).times(left).plus(constant(to))
	})
}

// ExponentialDecay multiplies by factor over the given steps, smoothly.
func ExponentialDecay(from, factor float64, steps int) Schedule {
	return exponential("exponential", from, factor, steps, number.over)
}

// StepDecay multiplies by factor after each period of steps, at once.
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

// Cosine falls as half a cosine wave, then stays constant (Loshchilov and Hutter 2017).
func Cosine(from, to float64, steps int) Schedule {
	return cosine("cosine", from, to, steps, func(t, all number) number { return t.atMost(all).over(all) })
}

// CosineRestarts repeats [Cosine] without end (SGDR, in the same paper).
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

// OneCycle rises as half a cosine wave from peak/25 to peak in the first 30 percent of the steps, then falls to
// peak/250,000 and stays there (Smith and Topin 2018).
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

// InverseSqrt is from·√(steps/(steps+t)). After a [Linear] from 0 over as many steps it is the transformer's schedule
// (Vaswani et al. 2017): from·√(steps/t), t from the start.
func InverseSqrt(from float64, steps int) Schedule {
	var w wrong
	w.finite(from)
	w.steps(steps)
	return schedule(fmt.Sprintf("inverse square root from %g with %d", from, steps), w.String(), func(t number) number {
		n := constant(float64(steps))
		return constant(from).times(n.over(n.plus(t)).power(constant(0.5)))
	})
}

// Then returns a schedule that follows s for the given number of updates, then next, from next's start. updates
// counts from the start of s, also if s is a result of Then: in a.Then(100, b).Then(300, c), c begins at 300.
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
		// next is also computed before its start: its step must not be negative.
		return t.whereBelow(start, s.value(t), next.value(t.minus(start).atLeast(constant(0))))
	})
}
