package flaxlike

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/internal/graphs"
)

// ChooseThresholds finds the best threshold of each class for an aim, on a set that the model was not trained on, for
// [Prediction.Classes], and returns the thresholds by output. The default is all binary and multi-label outputs
// ([Prediction.Kind]).
//
// Errors: an aim that no threshold reaches, with the best one; a class that no or each example has; no such output.
// Sample weights are ignored. [Model.Save] saves the thresholds. Calibrate first: a later calibration or change of the
// weights makes them outdated ([ErrOutdated]).
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

func (s *seen) setThresholds(output string, values []float64, at int64) {
	s.thresholds = maps.Clone(s.thresholds)
	if s.thresholds == nil {
		s.thresholds = map[string]fitted[float64]{}
	}
	if delete(s.thresholds, output); len(values) > 0 {
		s.thresholds[output] = fitted[float64]{slices.Clone(values), at}
	}
}

// SetThresholds sets an output's thresholds: one for all classes, or one for each; none resets them to 0.5. The name ""
// is the only output.
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

func (s *seen) checkWidth(output string, thresholds int) error {
	if width, ok := s.widths[output]; ok && thresholds > 1 && thresholds != width {
		return fmt.Errorf("output %q: there are %d thresholds for %d classes: expected one, or one for each", output, thresholds, width)
	}
	return nil
}

func checkThresholds(thresholds []float64) error {
	for _, threshold := range thresholds {
		if !(threshold >= 0 && threshold <= 1) || math.IsNaN(threshold) {
			return fmt.Errorf("a threshold is %v, expected probabilities, 0 to 1", threshold)
		}
	}
	return nil
}
