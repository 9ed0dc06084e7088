package flaxlike

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
)

// Calibration corrects an output's probabilities to the softmax or sigmoid of Scale·logit + Shift. Scale is above 0.
type Calibration struct {
	Scale float64 `json:"scale"`
	Shift float64 `json:"shift,omitempty"`
}

// Temperature returns 1/Scale, above 1 for an overconfident model.
func (c Calibration) Temperature() float64 { return 1 / c.Scale }

// String returns the temperature, if there is no shift.
func (c Calibration) String() string {
	if c.Shift == 0 {
		return fmt.Sprintf("temperature %.6g", c.Temperature())
	}
	return fmt.Sprintf("scale %.6g, shift %.6g", c.Scale, c.Shift)
}

func (c Calibration) check() error {
	if !(c.Scale > 0) || math.IsInf(c.Scale, 0) || math.IsNaN(c.Shift) || math.IsInf(c.Shift, 0) {
		return fmt.Errorf("the calibration is %+v, expected a Scale above 0 and a Shift, both finite", c)
	}
	return nil
}

func (c Calibration) of(logit float64) float64 { return c.Scale*logit + c.Shift }

// ErrOutdated is wrapped by the error about a calibration or thresholds fitted to earlier weights, or thresholds fitted
// before a calibration.
var ErrOutdated = graphs.ErrOutdated

// fitted.at is the count of changes when the values were fitted.
type fitted[T any] struct {
	values []T
	at     int64
}

// Calibrate fits the model's probabilities to a set that it was not trained on, for later predictions, and returns the
// calibration by output. The default is all outputs whose loss defines probabilities.
//
// For one of several classes it fits a temperature of the least crossentropy (Guo et al., 2017). For
// binary_crossentropy it fits a scale and a shift for each class, against the smoothed targets of Platt (1999).
//
// Errors: a softmax or sigmoid in the network; an output of sequences; a set with all or too few labels predicted
// right, which no temperature fits; a class whose logits are higher where its label is 0. Sample weights are ignored.
//
// [Prediction.Output], Evaluate and Export use uncalibrated logits. [Model.Save] saves the calibration. Calibrate makes
// earlier thresholds outdated ([ErrOutdated]).
func (m *Model) Calibrate(ctx context.Context, set *data.Set, outputs ...string) (map[string][]Calibration, error) {
	at := m.seen.changes.Load()
	outcomes, err := m.outcomes(ctx, set, true, outputs...)
	found := map[string][]Calibration{}
	for _, o := range outcomes {
		if found[o.name], err = o.calibration(); err != nil {
			err = fmt.Errorf("output %q: %w", o.name, err)
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("flaxlike: calibrate: %w", err)
	}
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	for name, values := range found {
		m.seen.calibrate(name, values, at)
	}
	return found, nil
}

// calibrate requires s.mu.
func (s *seen) calibrate(output string, values []Calibration, at int64) {
	s.calibrations = maps.Clone(s.calibrations)
	if s.calibrations == nil {
		s.calibrations = map[string]fitted[Calibration]{}
	}
	if delete(s.calibrations, output); len(values) > 0 {
		s.calibrations[output] = fitted[Calibration]{slices.Clone(values), at}
	}
	if t, ok := s.thresholds[output]; ok {
		s.thresholds = maps.Clone(s.thresholds)
		t.at = -1
		s.thresholds[output] = t
	}
}

// SetCalibration sets an output's calibration, or removes it without values: one Calibration, or one for each class of
// binary_crossentropy. The name "" is the only output.
func (m *Model) SetCalibration(output string, of ...Calibration) error {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	output, kind, err := m.seen.classesOf(output)
	for _, c := range of {
		err = errors.Join(err, c.check())
	}
	switch {
	case err != nil || len(of) == 0:
	case kind == softmaxed || kind == sigmoided:
		err = fmt.Errorf("output %q: %w", output, errThrough)
	case kind == softmax && (len(of) > 1 || of[0].Shift != 0):
		err = fmt.Errorf("output %q: %v is given, expected one Calibration without a Shift: an example has one of several classes", output, of)
	}
	if err != nil {
		return fmt.Errorf("flaxlike: set the calibration: %w", err)
	}
	m.seen.calibrate(output, of, m.seen.changes.Load())
	return nil
}

func valuesOf[T any](of map[string]fitted[T]) map[string][]T {
	values := map[string][]T{}
	for name, f := range of {
		values[name] = slices.Clone(f.values)
	}
	return values
}

// classesOf requires s.mu.
func (s *seen) classesOf(output string) (string, odds, error) {
	names := slices.Sorted(maps.Keys(s.odds))
	if output == "" && len(names) == 1 {
		output = names[0]
	}
	of, ok := s.odds[output]
	switch {
	case s.odds == nil:
		return output, of, errors.New("the model has not seen a batch, so its outputs are unknown: call Init")
	case !ok:
		return output, of, fmt.Errorf("output %q: %w; the model has %q", output, ErrUnknownName, names)
	case of == oddsUnknown || of == noOdds:
		return output, of, fmt.Errorf("output %q: %w", output, ErrNoProbabilities)
	}
	return output, of, nil
}

var errThrough = errors.New("it is the output of a softmax or a sigmoid, and calibration needs logits: end the network without that activation, and use a crossentropy as its loss")

type outcome struct {
	name    string
	of      odds
	width   int
	numbers []float64
	labels  []float64 // as many, or one class number for each example
	by      []Calibration
}

func (m *Model) outcomes(ctx context.Context, set *data.Set, calibrating bool, only ...string) (list []outcome, err error) {
	p, err := m.Predict(ctx, set)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	for _, name := range only {
		if _, _, _, err := p.find("", name); err != nil {
			return nil, errors.Unwrap(err)
		}
	}
	m.seen.mu.Lock()
	fields := m.seen.labels
	m.seen.mu.Unlock()
	for _, name := range p.Outputs() {
		of := p.of[name]
		unknown := of.odds == oddsUnknown && len(p.Outputs()) > 1
		if len(only) > 0 && !slices.Contains(only, name) || len(only) == 0 && (of.odds == noOdds || unknown) {
			continue
		}
		of.oldCalibration = of.oldCalibration && !calibrating
		p.of[name] = of
		_, err := p.answer("", func(a data.Array, of answering) (_ data.Array, err error) {
			o := outcome{name: name, of: of.odds, width: lastAxis(a), by: of.calibration}
			if len(a.Dims) > 2 {
				return a, fmt.Errorf("it is %v, expected [examples] or [examples, classes]", a.Dims)
			}
			if o.numbers, err = numbersIn(a); err != nil {
				return a, err
			}
			for i, v := range o.numbers {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return a, fmt.Errorf("example %d has %v, expected finite numbers", i/o.width, v)
				}
			}
			if o.labels, err = m.labels(set, fields[name]); err == nil {
				err = o.checkLabels()
			}
			if err != nil {
				return a, fmt.Errorf("labels %q: %w", fields[name], err)
			}
			list = append(list, o)
			return a, nil
		}, name)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", name, errors.Unwrap(err))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("none of the outputs %q has classes: their losses are for numbers: %w", p.Outputs(), ErrNoProbabilities)
	}
	return list, err
}

func (m *Model) labels(set *data.Set, field string) (labels []float64, err error) {
	for b, err := range set.Batches(m.set.batchSize, data.KeepRemainder()).All() {
		if err != nil {
			return nil, err
		}
		a, err := b.Field(field)
		if err != nil {
			return nil, err
		}
		kept, err := dropPadding(b, map[string]data.Array{field: a})
		if err != nil {
			return nil, err
		}
		numbers, ok := asFloats(kept[field].Flat)
		if !ok {
			return nil, fmt.Errorf("they are %s, expected numbers or truth values", a.DType())
		}
		labels = append(labels, numbers...)
	}
	return labels, nil
}

func (o *outcome) checkLabels() error {
	examples := len(o.numbers) / o.width
	rows := len(o.labels) == len(o.numbers)
	several := o.of == softmax || o.of == softmaxed
	if !rows && !(several && len(o.labels) == examples) {
		return fmt.Errorf("there are %d for %d examples of %d classes", len(o.labels), examples, o.width)
	}
	for i, v := range o.labels {
		example := i * examples / len(o.labels)
		switch {
		case several && !(rows && o.width > 1) && (v != math.Trunc(v) || v < 0 || v >= float64(o.width)):
			return fmt.Errorf("that of example %d is %v, expected a class from 0 to %d", example, v, o.width-1)
		case several && !(v >= 0):
			return fmt.Errorf("example %d has %v, expected shares of classes", example, v)
		case !several && v != 0 && v != 1:
			return fmt.Errorf("example %d has %v, expected 0 or 1", example, v)
		}
	}
	return nil
}

func (o *outcome) column(class int) (numbers []float64, positive []bool, err error) {
	ones := 0
	for i := class; i < len(o.numbers); i += o.width {
		numbers, positive = append(numbers, o.numbers[i]), append(positive, o.labels[i] == 1)
		ones += int(o.labels[i])
	}
	if ones == 0 || ones == len(numbers) {
		return nil, nil, fmt.Errorf("class %d: %d of %d examples belong to it: expected some that do, and some that do not", class, ones, len(numbers))
	}
	return numbers, positive, nil
}

func (o *outcome) calibration() ([]Calibration, error) {
	switch o.of {
	case softmaxed, sigmoided:
		return nil, errThrough
	case softmax:
		scale, err := fitScale(o.numbers, o.labels, o.width)
		return []Calibration{{Scale: scale}}, err
	}
	var all []Calibration
	for class := range o.width {
		numbers, positive, err := o.column(class)
		if err != nil {
			return nil, err
		}
		c, err := fitPlatt(numbers, positive)
		if err != nil {
			return nil, fmt.Errorf("class %d: %w", class, err)
		}
		all = append(all, c)
	}
	return all, nil
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
	return c, c.check()
}

func asFloats(flat any) ([]float64, bool) {
	switch f := flat.(type) {
	case []float64:
		return f, true
	case []float32:
		return widened(f), true
	case []int8:
		return widened(f), true
	case []int16:
		return widened(f), true
	case []int32:
		return widened(f), true
	case []int64:
		return widened(f), true
	case []uint8:
		return widened(f), true
	case []uint16:
		return widened(f), true
	case []uint32:
		return widened(f), true
	case []uint64:
		return widened(f), true
	case []bool:
		numbers := make([]float64, len(f))
		for i, is := range f {
			if is {
				numbers[i] = 1
			}
		}
		return numbers, true
	}
	return nil, false
}

func widened[T number](flat []T) []float64 {
	numbers := make([]float64, len(flat))
	for i, v := range flat {
		numbers[i] = float64(v)
	}
	return numbers
}
