package flaxlike

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

// PredictOne gives the outputs for one example, of which the fields have no axis of the batch, and the outputs have
// none. For many at a time, Predict, or a serve.Batcher, takes less time for each.
func (m *Model) PredictOne(ctx context.Context, example ...data.Field) (map[string]data.Array, error) {
	batch := data.Batch{Fields: slices.Clone(example)}
	inputs := m.Inputs()
	for i, f := range example {
		k := slices.IndexFunc(inputs, func(in Input) bool { return in.Name == f.Name })
		if k >= 0 && len(inputs[k].Dims) != len(f.Array.Dims) {
			return nil, fmt.Errorf("flaxlike: predict: field %q has dims %v, and that of an example is %v: leave the axis of the batch out, or use Predict", f.Name, f.Array.Dims, inputs[k].Dims)
		}
		batch.Fields[i].Array.Dims = append([]int{1}, f.Array.Dims...)
	}
	outputs, err := m.PredictStep(ctx, batch)
	for name, a := range outputs {
		if len(a.Dims) == 0 || a.Dims[0] != 1 {
			return nil, fmt.Errorf("flaxlike: predict: output %q has dims %v for one example, expected a first axis of 1: use PredictStep", name, a.Dims)
		}
		outputs[name] = data.Array{Flat: a.Flat, Dims: a.Dims[1:]}
	}
	return outputs, err
}

// PredictBatches gives the outputs for each of the batches, which come one by one, and keeps none of them: see
// [Model.Predict]. All are of one set of weights. Each size of batch is a program to compile.
func (m *Model) PredictBatches(ctx context.Context, batches loop.Source[data.Batch], options ...loop.Option) iter.Seq2[map[string]data.Array, error] {
	options = slices.Clone(options)
	return func(yield func(map[string]data.Array, error) bool) {
		reader, err := m.reading(ctx)
		if err != nil {
			yield(nil, fmt.Errorf("flaxlike: predict: %w", graphs.Inner(err)))
			return
		}
		more := true
		for outputs, err := range predictions.All(ctx, reader, batches, options...) {
			if err != nil {
				outputs, err = nil, fmt.Errorf("flaxlike: predict: %w", graphs.Inner(err))
			}
			if more = yield(outputs, err); !more || err != nil {
				more = false
				break
			}
		}
		if err := reader.view.Close(); err != nil && more {
			yield(nil, fmt.Errorf("flaxlike: predict: %w", graphs.Inner(err)))
		}
	}
}

// ErrNoProbabilities is wrapped by the error of [Model.Probabilities] and [Model.Classes] about a model that has none.
var ErrNoProbabilities = errors.New("no probabilities")

// odds is how the numbers of an output become probabilities.
type odds int

const (
	oddsUnknown odds = iota
	noOdds           // they are numbers of other things
	softmaxed        // they are probabilities of classes of which an example has one
	sigmoided        // they are probabilities, each of a class and its opposite
	softmax          // they become the first by a softmax over the last axis
	sigmoid          // they become the second by a sigmoid
)

// oddsOf asks the output first, which may have gone through a softmax, and then its losses.
func (s *settings) oddsOf(out map[string]*managed.Node, name string) odds {
	switch outputs.MadeBy(out[name]) {
	case "softmax":
		return softmaxed
	case "sigmoid":
		return sigmoided
	}
	of := oddsUnknown
	for _, l := range s.losses {
		if outputOf(out, l.Output) != name {
			continue
		}
		by := oddsOfLoss(l)
		switch {
		case by == oddsUnknown || by == of:
		case of == oddsUnknown || of == noOdds:
			of = by
		case by != noOdds: // two losses that take it for different things
			return oddsUnknown
		}
	}
	return of
}

func oddsOfLoss(l Loss) odds {
	switch {
	case l.Func != nil:
		return oddsUnknown
	case binaryLosses[l.Name]:
		return sigmoid
	case l.Name == "hinge" || l.Name == "squared_hinge" || l.Name == "categorical_hinge": // a margin is no logit
		return oddsUnknown
	}
	switch numbersOf(l) {
	case areExclusive:
		return softmax
	case areProbabilities:
		return sigmoided
	}
	return noOdds
}

// Probabilities is [Model.Predict] with probabilities in place of logits: by a softmax over the last axis where the
// output's loss is a crossentropy of classes of which an example has one, by a sigmoid where it is binary_crossentropy.
// An output that went through a softmax or a sigmoid itself, and one of dice or tversky, stays as it is. Those of other
// losses, as mse, are no probabilities and are left out. Where that cannot be known, as for a loss of one's own, it is
// an error, as is a model that has no output of probabilities.
func (m *Model) Probabilities(ctx context.Context, set *data.Set, options ...loop.Option) (map[string]data.Array, error) {
	outputs, err := m.Predict(ctx, set, options...)
	if err != nil {
		return nil, err
	}
	return m.ProbabilitiesOf(outputs)
}

// Probabilist is a model whose PredictStep gives probabilities, as [Model.ProbabilitiesStep] does: what to serve. It
// has the model's InputNames, which a function has not.
type Probabilist struct{ *Model }

// PredictStep is [Model.ProbabilitiesStep].
func (p Probabilist) PredictStep(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	return p.ProbabilitiesStep(ctx, batch)
}

// ProbabilitiesStep is [Model.PredictStep] with probabilities, as [Model.Probabilities] has them.
func (m *Model) ProbabilitiesStep(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	outputs, err := m.PredictStep(ctx, batch)
	if err != nil {
		return nil, err
	}
	return m.ProbabilitiesOf(outputs)
}

// ProbabilitiesOf are those of outputs that [Model.Predict] gave, as [Model.Probabilities] has them.
func (m *Model) ProbabilitiesOf(outputs map[string]data.Array) (map[string]data.Array, error) {
	if err := m.seen.current(calibrationsAlone); err != nil {
		return nil, fmt.Errorf("flaxlike: probabilities: %w", err)
	}
	m.seen.mu.Lock()
	known, calibrations := m.seen.odds, m.seen.calibrations
	m.seen.mu.Unlock()
	all, err := eachOfClasses(known, outputs, func(name string, a data.Array, of odds) (data.Array, error) {
		if of == softmaxed || of == sigmoided {
			return a, nil
		}
		numbers, err := numbersIn(a)
		if err != nil {
			return a, err
		}
		flat := make([]float32, len(numbers))
		width := lastAxis(a)
		for at := 0; at < len(numbers); at += width {
			for i, p := range probabilitiesOf(numbers[at:at+width], of, calibrations[name].values) {
				flat[at+i] = float32(p)
			}
		}
		return data.Array{Flat: flat, Dims: a.Dims}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("flaxlike: probabilities: %w", err)
	}
	return all, nil
}

// Classes is the class of each example, as int32: of the outputs that [Model.Probabilities] has, where an example has
// one class, the likeliest, and the first of several that are as likely; where each number is of a class and its
// opposite, 1 if its probability is above the threshold, and else 0, without the last axis if that is 1. The
// threshold is 0.5, or that of [Model.ChooseThresholds], or the one given, or of those given the class's own, in
// their order along the last axis. A NaN is an error.
func (m *Model) Classes(ctx context.Context, set *data.Set, thresholds ...float64) (map[string]data.Array, error) {
	outputs, err := m.Predict(ctx, set)
	if err != nil {
		return nil, err
	}
	return m.ClassesOf(outputs, thresholds...)
}

// ClassesOf are those of outputs that [Model.Predict] gave, and not of their probabilities, as [Model.Classes] has
// them.
func (m *Model) ClassesOf(outputs map[string]data.Array, thresholds ...float64) (map[string]data.Array, error) {
	thresholds = slices.Clone(thresholds)
	if err := m.seen.current(len(thresholds) > 0); err != nil {
		return nil, fmt.Errorf("flaxlike: classes: %w", err)
	}
	m.seen.mu.Lock()
	d := decision{m.seen.odds, m.seen.calibrations, m.seen.thresholds}
	m.seen.mu.Unlock()
	return d.classes(outputs, thresholds)
}

// decision is how outputs become classes.
type decision struct {
	odds         map[string]odds
	calibrations map[string]fitted[Calibration]
	thresholds   map[string]fitted[float64]
}

// classes are those of outputs; thresholds that are given are in place of an output's own.
func (d decision) classes(outputs map[string]data.Array, given []float64) (map[string]data.Array, error) {
	if err := checkThresholds(given); err != nil {
		return nil, fmt.Errorf("flaxlike: classes: %w", err)
	}
	taken := false
	classes, err := eachOfClasses(d.odds, outputs, func(name string, a data.Array, of odds) (data.Array, error) {
		thresholds := given
		if len(given) == 0 {
			thresholds = d.thresholds[name].values
		}
		numbers, err := numbersIn(a)
		if at := slices.IndexFunc(numbers, math.IsNaN); at >= 0 {
			err = fmt.Errorf("example %d has a NaN, which is of no class", at/(len(numbers)/a.Len()))
		}
		if err != nil {
			return a, err
		}
		width, flat := lastAxis(a), []int32(nil)
		narrow := data.Array{Dims: a.Dims[:max(1, len(a.Dims)-1)]}
		if of == softmax || of == softmaxed {
			for at := 0; at < len(numbers); at += width {
				best := 0
				for i, v := range numbers[at : at+width] {
					if v > numbers[at+best] {
						best = i
					}
				}
				flat = append(flat, int32(best))
			}
			narrow.Flat = flat
			return narrow, nil
		}
		if taken = true; len(thresholds) > 1 && len(thresholds) != width {
			return a, fmt.Errorf("there are %d thresholds for %d classes: expected one, or one for each", len(thresholds), width)
		}
		for at := 0; at < len(numbers); at += width {
			for i, p := range probabilitiesOf(numbers[at:at+width], of, d.calibrations[name].values) {
				threshold := 0.5
				if len(thresholds) > 0 {
					threshold = thresholds[min(i, len(thresholds)-1)]
				}
				class := int32(0)
				if p > threshold {
					class = 1
				}
				flat = append(flat, class)
			}
		}
		if width > 1 {
			narrow.Dims = a.Dims
		}
		narrow.Flat = flat
		return narrow, nil
	})
	if err == nil && len(given) > 0 && !taken {
		err = errors.New("thresholds are given, and each example has one of several classes, the likeliest: leave them out")
	}
	if err != nil {
		return nil, fmt.Errorf("flaxlike: classes: %w", err)
	}
	return classes, nil
}

// eachOfClasses changes the outputs that are of classes, and leaves out those that are known not to be.
func eachOfClasses(known map[string]odds, outputs map[string]data.Array, change func(name string, a data.Array, of odds) (data.Array, error)) (map[string]data.Array, error) {
	changed := map[string]data.Array{}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		var err error
		switch known[name] {
		case noOdds:
			continue
		case oddsUnknown:
			err = fmt.Errorf("no loss by name says whether its numbers are logits: %w\n  end the network with Activation(\"softmax\") or "+
				"Activation(\"sigmoid\"), or give New a crossentropy by its name (WithLoss)", ErrNoProbabilities)
		default:
			changed[name], err = change(name, outputs[name], known[name])
		}
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", name, err)
		}
	}
	if len(changed) == 0 {
		return nil, fmt.Errorf("none of the outputs %q is of classes: their losses are of numbers: %w", slices.Sorted(maps.Keys(outputs)), ErrNoProbabilities)
	}
	return changed, nil
}

// lastAxis is the length of the last axis; 1 where there is none but that of the batch.
func lastAxis(a data.Array) int {
	if len(a.Dims) < 2 {
		return 1
	}
	return max(1, a.Dims[len(a.Dims)-1])
}

func numbersIn(a data.Array) ([]float64, error) {
	switch flat := a.Flat.(type) {
	case []float64:
		return flat, nil
	case []float32:
		return widened(flat), nil
	}
	return nil, fmt.Errorf("its numbers are %s, expected float32 or float64", a.DType())
}

// probabilitiesOf are those of the numbers of one example, or of one of its places, by a calibration for all or for
// each, if there is one.
func probabilitiesOf(numbers []float64, of odds, by []Calibration) []float64 {
	if of == softmaxed || of == sigmoided {
		return numbers
	}
	if len(by) > 0 {
		numbers = slices.Clone(numbers)
		for i, v := range numbers {
			numbers[i] = by[min(i, len(by)-1)].of(v)
		}
	}
	p, sum := make([]float64, len(numbers)), 0.0
	highest := slices.Max(numbers) // NaN if one is
	for i, v := range numbers {
		if of == sigmoid {
			p[i] = 1 / (1 + math.Exp(-v))
			continue
		}
		p[i] = math.Exp(v - highest)
		sum += p[i]
	}
	if of == softmax {
		for i := range p {
			p[i] /= sum
		}
	}
	return p
}
