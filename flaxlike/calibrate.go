package flaxlike

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/graphs"
)

// Calibrate fits the model's probabilities to a set that it was not trained on, and returns the calibration by
// output. The default is all outputs with probabilities.
//
// For one of several classes it fits a temperature ([decision.Calibration.FitTemperature]), for binary_crossentropy a
// scale and a shift for each class ([decision.Calibration.FitPlatt]). A softmax or sigmoid in the network and an
// output of sequences are errors. Sample weights are ignored.
//
// [Prediction.Output], Evaluate and Export use uncalibrated logits. [Model.Save] saves the calibration, which makes
// earlier thresholds outdated.
func (m *Model) Calibrate(ctx context.Context, set *data.Set, outputs ...string) (map[string][]decision.Calibration, error) {
	at := m.seen.changes.Load()
	outcomes, err := m.outcomes(ctx, set, true, outputs...)
	found := map[string][]decision.Calibration{}
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

// SetCalibration sets an output's calibration, or removes it without values: one Calibration, or one for each class of
// binary_crossentropy. "" is the only output.
func (m *Model) SetCalibration(output string, of ...decision.Calibration) error {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	output, kind, err := m.seen.classesOf(output)
	for _, c := range of {
		err = errors.Join(err, graphs.Inner(c.Check()))
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

// ChooseThresholds finds each output's best thresholds for an aim, one per class, on a set that the model was not
// trained on, for [Prediction.Classes]. The default is all binary and multi-label outputs ([Prediction.Kind]).
//
// Sample weights are ignored. [Model.Save] saves the thresholds. A later calibration or change of the weights makes
// them outdated ([ErrOutdated]).
func (m *Model) ChooseThresholds(ctx context.Context, set *data.Set, aim decision.Aim, outputs ...string) (map[string][]decision.Threshold, error) {
	if err := aim.Check(); err != nil {
		return nil, fmt.Errorf("flaxlike: choose thresholds: %w", graphs.Inner(err))
	}
	at := m.seen.changes.Load()
	outcomes, err := m.outcomes(ctx, set, false, outputs...)
	found := map[string][]decision.Threshold{}
	for _, o := range outcomes {
		if err == nil && (o.of == sigmoid || o.of == sigmoided) {
			if found[o.name], err = o.thresholds(aim); err != nil {
				err = fmt.Errorf("output %q: %w", o.name, err)
			}
		}
	}
	if i := slices.IndexFunc(outputs, func(name string) bool { return found[name] == nil }); err == nil && i >= 0 && len(found) > 0 {
		err = fmt.Errorf("output %q: an example has one of several classes, and the likeliest is predicted: leave the output out", outputs[i])
	}
	if err == nil && len(found) == 0 {
		err = errors.New("an example of each output has one of several classes, and the likeliest is predicted: thresholds are for binary_crossentropy or a sigmoid")
	}
	if err != nil {
		return nil, fmt.Errorf("flaxlike: choose thresholds: %w", err)
	}
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	for name, chosen := range found {
		var values []float64
		for _, t := range chosen {
			values = append(values, t.Value)
		}
		m.seen.setThresholds(name, values, at)
	}
	return found, nil
}

// SetThresholds sets an output's thresholds: one for all classes, or one for each; none resets them to 0.5. "" is the
// only output.
func (m *Model) SetThresholds(output string, thresholds ...float64) error {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	output, of, err := m.seen.classesOf(output)
	if err == nil && of != sigmoid && of != sigmoided && len(thresholds) > 0 {
		err = fmt.Errorf("output %q: each example has one of several classes, the likeliest", output)
	}
	if err == nil {
		err = checkThresholds(thresholds)
	}
	if err == nil {
		err = m.seen.checkWidth(output, len(thresholds))
	}
	if err != nil {
		return fmt.Errorf("flaxlike: set thresholds: %w", err)
	}
	m.seen.setThresholds(output, thresholds, m.seen.changes.Load())
	return nil
}

var errThrough = errors.New("it is the output of a softmax or a sigmoid, and calibration needs logits: end the network without that activation, and use a crossentropy as its loss")

type outcome struct {
	name    string
	of      odds
	width   int
	numbers []float64
	labels  []float64 // as many, or a class number for each example
	by      []decision.Calibration
}

func (m *Model) outcomes(ctx context.Context, set *data.Set, calibrating bool, only ...string) (list []outcome, err error) {
	set, err = m.enterSet(set, true)
	var p Prediction
	if err == nil {
		p, err = m.predictAll(ctx, set, nil)
	}
	if err != nil {
		return nil, graphs.Inner(err)
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
	for b, err := range set.Batches(m.set.batchSize, data.Kept).All() {
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
		numbers, ok := arrays.Floats(kept[field].Flat)
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

func (o *outcome) column(class int) (numbers []float64, positive []bool) {
	for i := class; i < len(o.numbers); i += o.width {
		numbers, positive = append(numbers, o.numbers[i]), append(positive, o.labels[i] == 1)
	}
	return numbers, positive
}

func (o *outcome) calibration() ([]decision.Calibration, error) {
	switch o.of {
	case softmaxed, sigmoided:
		return nil, errThrough
	case softmax:
		var c decision.Calibration
		err := c.FitTemperature(o.numbers, o.labels, o.width)
		return []decision.Calibration{c}, graphs.Inner(err)
	}
	var all []decision.Calibration
	for class := range o.width {
		var c decision.Calibration
		if err := c.FitPlatt(o.column(class)); err != nil {
			return nil, fmt.Errorf("class %d: %w", class, graphs.Inner(err))
		}
		all = append(all, c)
	}
	return all, nil
}

func (o *outcome) thresholds(aim decision.Aim) (chosen []decision.Threshold, err error) {
	for class := range o.width {
		numbers, positive := o.column(class)
		var by []decision.Calibration
		if o.by != nil {
			by = o.by[min(class, len(o.by)-1):][:1]
		}
		for i, v := range numbers {
			numbers[i] = probabilitiesOf([]float64{v}, o.of, by)[0]
		}
		t, err := aim.Choose(numbers, positive)
		if err != nil {
			return nil, fmt.Errorf("class %d: %w", class, graphs.Inner(err))
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}
