package selection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
)

// Ensemble predicts the mean of several models' predictions, and does not close them. It is a serve.Predictor.
type Ensemble struct{ models []*flaxlike.Model }

// NewEnsemble returns an ensemble of models with equal inputs, outputs and classes, as of a [CrossValidate] or of
// several seeds. They must be built.
func NewEnsemble(models ...*flaxlike.Model) (*Ensemble, error) {
	e := &Ensemble{slices.Clone(models)}
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("selection: new ensemble: %w", err)
	}
	return e, nil
}

func (e *Ensemble) check() error {
	if len(e.models) == 0 {
		return errors.New("there are no models")
	}
	var first flaxlike.Description
	var kinds map[string]string
	for i, m := range e.models {
		switch {
		case m == nil:
			return fmt.Errorf("model %d of %d is nil", i+1, len(e.models))
		case slices.Contains(e.models[:i], m):
			return fmt.Errorf("model %d of %d appears twice, and would count double", i+1, len(e.models))
		}
		d, of := m.Describe(), m.Summary().Outputs
		if d.Inputs == nil {
			return fmt.Errorf("model %d of %d has not seen a batch, so its inputs and outputs are unknown: call Model.Init", i+1, len(e.models))
		}
		if p := m.Preparation(); p != nil { // each makes the inputs of its network of the columns
			columns, _ := p.Columns()
			d.Inputs = nil
			for _, name := range columns {
				d.Inputs = append(d.Inputs, flaxlike.Input{Name: name, Type: "column"})
			}
		}
		slices.SortFunc(d.Inputs, func(a, b flaxlike.Input) int { return strings.Compare(a.Name, b.Name) })
		if i == 0 {
			first, kinds = d, of
		}
		switch own, its := fmt.Sprint(first.Inputs), fmt.Sprint(d.Inputs); {
		case own != its:
			return fmt.Errorf("model %d has the inputs %s, and the first one %s", i+1, its, own)
		case !maps.Equal(kinds, of):
			return fmt.Errorf("model %d has the outputs %v, and the first one %v", i+1, of, kinds)
		}
		if own, its := fmt.Sprintf("%q", first.Classes), fmt.Sprintf("%q", d.Classes); own != its {
			return fmt.Errorf("model %d has the classes %s, and the first one %s", i+1, its, own)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if kinds[name] == "unknown" {
			return fmt.Errorf("output %q: no loss by name says whether its numbers are logits, whose mean is not a prediction: %w", name, flaxlike.ErrNoProbabilities)
		}
	}
	return nil
}

// Predict returns the mean outputs for a set's examples, in their order; for classes, of calibrated probabilities. The
// threshold is 0.5, or that of [flaxlike.Prediction.WithThresholds], not the models'.
func (e *Ensemble) Predict(ctx context.Context, set *data.Set, options ...loop.Option) (flaxlike.Prediction, error) {
	options = slices.Clone(options)
	p, failed, err := e.mean(func(m *flaxlike.Model) (flaxlike.Prediction, error) { return m.Predict(ctx, set, options...) })
	if err == nil && len(failed) > 0 {
		return flaxlike.Prediction{}, failed
	}
	return p, err
}

// Answer is [flaxlike.Model.Answer] for the means.
func (e *Ensemble) Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	p, failed, err := e.mean(func(m *flaxlike.Model) (flaxlike.Prediction, error) { return m.PredictBatch(ctx, batch) })
	if err != nil {
		return nil, err
	}
	answers, err := p.Answers()
	var errs graphs.OutputErrors
	if !errors.As(err, &errs) {
		errs = graphs.OutputErrors{}
	}
	for name, err := range failed {
		errs[name+"_probability"], errs[name+"_class"] = err, err
	}
	if len(errs) > 0 {
		return answers, errs
	}
	return answers, nil
}

func decided(p flaxlike.Prediction) (outputs map[string]data.Array, failed graphs.OutputErrors) {
	outputs, failed = map[string]data.Array{}, graphs.OutputErrors{}
	for _, name := range p.Outputs() {
		of := p.Probabilities
		if kind, _ := p.Kind(name); kind == "numbers" || kind == "unknown" {
			of = p.Output
		}
		if a, err := of(name); err != nil {
			failed[name] = err
		} else {
			outputs[name] = a
		}
	}
	return outputs, failed
}

func (e *Ensemble) mean(predict func(*flaxlike.Model) (flaxlike.Prediction, error)) (means flaxlike.Prediction, failed graphs.OutputErrors, err error) {
	sums, failed := map[string][]float64{}, graphs.OutputErrors{}
	var base flaxlike.Prediction
	var first map[string]data.Array
	for i, m := range e.models {
		p, err := predict(m)
		outputs, without := decided(p)
		if i == 0 {
			base, first = p, outputs
		}
		for name, of := range without {
			if failed[name] == nil {
				failed[name] = fmt.Errorf("selection: predict: model %d of the ensemble: %w", i+1, graphs.Inner(of))
			}
		}
		for _, name := range p.Outputs() {
			if err == nil && failed[name] == nil {
				err = add(sums, name, outputs[name], first[name])
			}
		}
		if own, its := base.Outputs(), p.Outputs(); err == nil && len(own) != len(its) {
			err = fmt.Errorf("it has the outputs %q, and the first model %q", its, own)
		}
		if err != nil {
			return means, nil, fmt.Errorf("selection: predict: model %d of the ensemble: %w", i+1, graphs.Inner(err))
		}
	}
	outputs := map[string]data.Array{}
	for name, sum := range sums {
		if failed[name] != nil {
			continue
		}
		for i := range sum {
			sum[i] /= float64(len(e.models))
		}
		a := data.Array{Flat: sum, Dims: first[name].Dims}
		if _, wide := first[name].Flat.([]float64); !wide {
			flat := make([]float32, len(sum))
			for i, v := range sum {
				flat[i] = float32(v)
			}
			a.Flat = flat
		}
		outputs[name] = a
	}
	means, err = base.WithOutputs(outputs)
	return means, failed, err
}

func add(sums map[string][]float64, name string, a, first data.Array) error {
	if !slices.Equal(a.Dims, first.Dims) || a.DType() != first.DType() {
		return fmt.Errorf("output %q is %s%v, and that of the first model %s%v", name, a.DType(), a.Dims, first.DType(), first.Dims)
	}
	if sums[name] == nil {
		sums[name] = make([]float64, a.Size())
	}
	switch flat := a.Flat.(type) {
	case []float64:
		for i, v := range flat {
			sums[name][i] += v
		}
	case []float32:
		for i, v := range flat {
			sums[name][i] += float64(v)
		}
	default:
		return fmt.Errorf("output %q: its numbers are %s, expected float32 or float64", name, a.DType())
	}
	return nil
}
