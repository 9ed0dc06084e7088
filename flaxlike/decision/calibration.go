package decision

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// Calibration corrects an output's probabilities to the softmax or sigmoid of Scale·logit + Shift. Scale is above 0.
type Calibration struct {
	Scale float64 `json:"scale"`
	Shift float64 `json:"shift,omitempty"`
}

// Temperature returns 1/Scale, above 1 for an overconfident model.
func (c Calibration) Temperature() float64 { return 1 / c.Scale }

func (c Calibration) String() string {
	if c.Shift == 0 {
		return fmt.Sprintf("temperature %.6g", c.Temperature())
	}
	return fmt.Sprintf("scale %.6g, shift %.6g", c.Scale, c.Shift)
}

// Check returns an error unless Scale is above 0 and both are finite.
func (c Calibration) Check() error {
	if !(c.Scale > 0) || math.IsInf(c.Scale, 0) || math.IsNaN(c.Shift) || math.IsInf(c.Shift, 0) {
		return fmt.Errorf("decision: the calibration is %+v, expected a Scale above 0 and a Shift, both finite", c)
	}
	return nil
}

// Apply returns Scale·logit + Shift.
func (c Calibration) Apply(logit float64) float64 { return c.Scale*logit + c.Shift }

// FitTemperature sets c to the temperature of the least crossentropy (Guo et al., 2017). logits is [examples,
// classes]; labels has each example's class, or the classes' shares in the shape of logits.
//
// Non-finite logits, labels that are no classes, and all or too few labels predicted right are errors.
func (c *Calibration) FitTemperature(logits, labels []float64, classes int) error {
	err := checkLabels(logits, labels, classes)
	var b float64
	if err == nil {
		b, err = fitScale(logits, labels, classes)
	}
	if err != nil {
		return fmt.Errorf("decision: %w", err)
	}
	*c = Calibration{Scale: b}
	return nil
}

func checkLabels(logits, labels []float64, classes int) error {
	if classes < 1 || len(logits) == 0 || len(logits)%classes != 0 || len(labels) != len(logits) && len(labels) != len(logits)/classes {
		return fmt.Errorf("there are %d logits and %d labels for %d classes, expected a logit for each example and class, and a label for each example or logit",
			len(logits), len(labels), classes)
	}
	shares := len(labels) == len(logits) && classes > 1
	for i, v := range labels {
		if shares && !(v >= 0) || !shares && (v != math.Trunc(v) || v < 0 || v >= float64(classes)) {
			return fmt.Errorf("label %d is %v, expected a class from 0 to %d, or the shares of all classes", i, v, classes-1)
		}
	}
	return checkFinite(logits)
}

func checkFinite(numbers []float64) error {
	if i := slices.IndexFunc(numbers, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }); i >= 0 {
		return fmt.Errorf("number %d is %v, expected finite numbers", i, numbers[i])
	}
	return nil
}

// fitScale finds the b of the least crossentropy of softmax(b·logits), convex in b.
func fitScale(logits, labels []float64, classes int) (float64, error) {
	examples := len(logits) / classes
	share := func(i, k int) float64 {
		switch {
		case len(labels) == len(logits) && classes > 1:
			return labels[i*classes+k]
		case int(labels[i]) == k:
			return 1
		}
		return 0
	}
	target, sum, right := make([]float64, examples), make([]float64, examples), true
	for i := range examples {
		row := logits[i*classes : (i+1)*classes]
		highest := slices.Max(row)
		for k, z := range row {
			target[i] += share(i, k) * (z - highest)
			sum[i] += share(i, k)
		}
		right = right && target[i] == 0
	}
	if right {
		return 0, fmt.Errorf("the highest logit of all %d examples is that of their class, so the best temperature is 0: give more examples, with some wrong predictions", examples)
	}
	slopes := func(b float64) (first, second float64) {
		for i := range examples {
			row := logits[i*classes : (i+1)*classes]
			highest, all, one, two := slices.Max(row), 0.0, 0.0, 0.0
			for _, z := range row {
				z -= highest
				e := math.Exp(b * z)
				all, one, two = all+e, one+e*z, two+e*z*z
			}
			one, two = one/all, two/all
			first += sum[i]*one - target[i]
			second += sum[i] * (two - one*one)
		}
		return first, second
	}
	if first, _ := slopes(0); !(first < 0) {
		return 0, errors.New("the logits are no better than chance: a higher one makes its class no likelier: compare the numbering of the classes in the set with that of " +
			"the training; if they agree, train on, or calibrate other outputs only")
	}
	low, high := 0.0, 1.0
	for first, _ := slopes(high); first < 0; first, _ = slopes(high) {
		if low, high = high, 2*high; math.IsInf(high, 0) {
			return 0, errors.New("no temperature is best: the logits are too close to each other")
		}
	}
	b := (low + high) / 2
	for range 200 {
		first, second := slopes(b)
		if first < 0 {
			low = b
		} else {
			high = b
		}
		next := b - first/second
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		if math.Abs(next-b) <= 1e-15*b {
			break
		}
		b = next
	}
	return b, nil
}

// FitPlatt sets c to one class's scale and shift, against the smoothed targets of Platt (1999). positive reports
// which examples belong to the class.
//
// Errors: non-finite logits; a class that no or each example has; logits that are equal, or higher where positive is
// false.
func (c *Calibration) FitPlatt(logits []float64, positive []bool) error {
	err := checkPositive(logits, positive)
	var found Calibration
	if err == nil {
		found, err = fitPlatt(logits, positive)
	}
	if err != nil {
		return fmt.Errorf("decision: %w", graphs.Inner(err))
	}
	*c = found
	return nil
}

func checkPositive(numbers []float64, positive []bool) error {
	ones := 0
	for _, is := range positive {
		if is {
			ones++
		}
	}
	switch {
	case len(numbers) != len(positive):
		return fmt.Errorf("there are %d numbers for %d examples, expected one for each", len(numbers), len(positive))
	case ones == 0 || ones == len(positive):
		return fmt.Errorf("%d of %d examples belong to it: expected some that do, and some that do not", ones, len(positive))
	}
	return checkFinite(numbers)
}

// fitPlatt fits sigmoid(scale·logit + shift) to the targets (n₁+1)/(n₁+2) and 1/(n₀+2), by Newton's method on
// normalized logits.
func fitPlatt(logits []float64, positive []bool) (Calibration, error) {
	n, ones, mean, deviation := float64(len(logits)), 0.0, 0.0, 0.0
	for i, v := range logits {
		mean += v / n
		if positive[i] {
			ones++
		}
	}
	for _, v := range logits {
		deviation += (v - mean) * (v - mean) / n
	}
	deviation = math.Sqrt(deviation)
	if deviation == 0 {
		return Calibration{}, errors.New("all examples have the same logit, which gives no information about their labels")
	}
	target := func(i int) float64 {
		if positive[i] {
			return (ones + 1) / (ones + 2)
		}
		return 1 / (n - ones + 2)
	}
	loss := func(a, b float64) (sum float64) {
		for i, v := range logits {
			s := a*(v-mean)/deviation + b
			sum += math.Log1p(math.Exp(-math.Abs(s))) + max(s, 0) - target(i)*s
		}
		return sum
	}
	a, b := 0.0, math.Log((ones+1)/(n-ones+1))
	now := loss(a, b)
	for range 100 {
		var ga, gb, haa, hab, hbb float64
		for i, v := range logits {
			x := (v - mean) / deviation
			p := 1 / (1 + math.Exp(-(a*x + b)))
			g, h := p-target(i), p*(1-p)
			ga, gb, haa, hab, hbb = ga+g*x, gb+g, haa+h*x*x, hab+h*x, hbb+h
		}
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		t, gain := 1.0, ga*da+gb*db
		for ; t > 1e-10; t /= 2 { // accepts a gain below the rounding of the sum
			if then := loss(a-t*da, b-t*db); then <= now-1e-4*t*gain || gain < 1e-9*now {
				a, b, now = a-t*da, b-t*db, then
				break
			}
		}
		if t <= 1e-10 || math.Abs(da)+math.Abs(db) <= 1e-12*(math.Abs(a)+math.Abs(b)) {
			break
		}
	}
	c := Calibration{Scale: a / deviation, Shift: b - a*mean/deviation}
	if !(c.Scale > 0) {
		return c, fmt.Errorf("its logits are no higher where the label is 1 than where it is 0 (their scale would be %.3g), which calibration cannot correct: "+
			"compare the set's labels with those of the training (0 and 1 exchanged, another order of the columns); if they agree, train on, or calibrate other outputs only", c.Scale)
	}
	return c, c.Check()
}
