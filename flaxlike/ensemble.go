package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
)

// Ensemble predicts the mean of several models' predictions, and does not close them. It is a serve.Predictor.
type Ensemble struct {
	models []*Model
	odds   map[string]odds
}

// NewEnsemble returns an ensemble of models with equal inputs, outputs and classes, as of a [CrossValidate] or of
// several seeds. They must be built ([Model.Init]).
func NewEnsemble(models ...*Model) (*Ensemble, error) {
	e := &Ensemble{models: slices.Clone(models)}
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("flaxlike: new ensemble: %w", err)
	}
	return e, nil
}

func (e *Ensemble) check() error {
	if len(e.models) == 0 {
		return errors.New("there are no models")
	}
	for i, m := range e.models {
		switch {
		case m == nil:
			return fmt.Errorf("model %d of %d is nil", i+1, len(e.models))
		case slices.Contains(e.models[:i], m):
			return fmt.Errorf("model %d of %d appears twice, and would count double", i+1, len(e.models))
		case m.inputs() == nil:
			return fmt.Errorf("model %d of %d has not seen a batch, so its inputs and outputs are unknown: call Model.Init", i+1, len(e.models))
		}
		of, first := m.means(), e.models[0]
		if i == 0 {
			e.odds = of
			continue
		}
		inputs := func(m *Model) string { return fmt.Sprint(slices.SortedFunc(slices.Values(m.inputs()), byName)) }
		names := func(m *Model) string { return fmt.Sprintf("%q", m.set.classes) }
		switch own, its := inputs(first), inputs(m); {
		case own != its:
			return fmt.Errorf("model %d has the inputs %s, and the first one %s", i+1, its, own)
		case !maps.Equal(e.odds, of):
			return fmt.Errorf("model %d has the outputs %v, and the first one %v", i+1, of, e.odds)
		case names(first) != names(m):
			return fmt.Errorf("model %d has the classes %s, and the first one %s", i+1, names(m), names(first))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.odds)) {
		if e.odds[name] == oddsUnknown {
			return fmt.Errorf("output %q: no loss by name says whether its numbers are logits, whose mean is not a prediction: %w", name, ErrNoProbabilities)
		}
	}
	return nil
}

func byName(a, b Input) int { return strings.Compare(a.Name, b.Name) }

func (m *Model) means() map[string]odds {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	of := map[string]odds{}
	for name, o := range m.seen.odds {
		of[name] = o.decided()
	}
	return of
}

func (o odds) String() string {
	return [...]string{"of no known kind", "numbers", "probabilities of classes", "probabilities", "logits of classes", "logits"}[o]
}

// Predict returns the mean outputs for a set's examples, in their order; for classes, of calibrated probabilities. The
// threshold is 0.5, or that of [Prediction.WithThresholds], not the models'.
func (e *Ensemble) Predict(ctx context.Context, set *data.Set, options ...loop.Option) (Prediction, error) {
	options = slices.Clone(options)
	p, failed, err := e.mean(func(m *Model) (Prediction, error) { return m.Predict(ctx, set, options...) })
	if err == nil && len(failed) > 0 {
		return Prediction{}, failed
	}
	return p, err
}

// Answer is [Model.Answer] for the means, for serve.New.
func (e *Ensemble) Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	p, failed, err := e.mean(func(m *Model) (Prediction, error) { return m.predictBatch(ctx, batch) })
	if err != nil {
		return nil, err
	}
	return p.answers(failed)
}

// failed has the errors of outputs without probabilities.
func (e *Ensemble) mean(predict func(*Model) (Prediction, error)) (means Prediction, failed graphs.OutputErrors, err error) {
	sums, failed := map[string][]float64{}, graphs.OutputErrors{}
	var first Prediction
	for i, m := range e.models {
		p, err := predict(m)
		var without graphs.OutputErrors
		if err == nil {
			p, without = p.decided()
		}
		if err == nil && i == 0 {
			first = p
		}
		for name, of := range without {
			failed[name] = cmp.Or(failed[name], fmt.Errorf("flaxlike: predict: model %d of the ensemble: %w", i+1, graphs.Inner(of)))
		}
		for _, name := range p.Outputs() {
			if err == nil && failed[name] == nil {
				err = add(sums, name, p.outputs[name], first.outputs[name])
			}
		}
		if err == nil && len(p.outputs) != len(first.outputs) {
			err = fmt.Errorf("it has the outputs %q, and the first model %q", p.Outputs(), first.Outputs())
		}
		if err != nil {
			return means, nil, fmt.Errorf("flaxlike: predict: model %d of the ensemble: %w", i+1, graphs.Inner(err))
		}
	}
	means = Prediction{outputs: map[string]data.Array{}, of: first.of}
	for name, sum := range sums {
		if failed[name] != nil {
			continue
		}
		for i := range sum {
			sum[i] /= float64(len(e.models))
		}
		a := data.Array{Flat: sum, Dims: first.outputs[name].Dims}
		if _, wide := first.outputs[name].Flat.([]float64); !wide {
			flat := make([]float32, len(sum))
			for i, v := range sum {
				flat[i] = float32(v)
			}
			a.Flat = flat
		}
		means.outputs[name] = a
	}
	return means, failed, nil
}

func add(sums map[string][]float64, name string, a, first data.Array) error {
	numbers, err := numbersIn(a)
	if err != nil {
		return fmt.Errorf("output %q: %w", name, err)
	}
	if !slices.Equal(a.Dims, first.Dims) || a.DType() != first.DType() {
		return fmt.Errorf("output %q is %s%v, and that of the first model %s%v", name, a.DType(), a.Dims, first.DType(), first.Dims)
	}
	if sums[name] == nil {
		sums[name] = make([]float64, len(numbers))
	}
	for i, v := range numbers {
		sums[name][i] += v
	}
	return nil
}
