package flaxlike

import (
	"errors"
	"fmt"
	"math"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

func (f Fit) check(m *Model) error {
	for _, n := range []struct {
		name string
		n    int
	}{{"Epochs", f.Epochs}, {"InitialEpoch", f.InitialEpoch}, {"BatchSize", f.BatchSize}, {"StepsPerEpoch", f.StepsPerEpoch},
		{"ValidationEvery", f.ValidationEvery}, {"ValidationSteps", f.ValidationSteps}, {"ValidationBatchSize", f.ValidationBatchSize},
		{"OverfitBatches", f.OverfitBatches}} {
		if n.n < 0 {
			return fmt.Errorf("%s is %d, expected 0 (not given) or more", n.name, n.n)
		}
	}
	validated := f.Validation != nil || f.ValidationSplit != 0 || f.ValidationBatches != nil || len(f.Validations) > 0
	switch {
	case f.Until != nil && f.Epochs > 0:
		return fmt.Errorf("both Epochs, %d, and Until, %s, are given, expected one: a run has one end", f.Epochs, f.Until)
	case f.Until == nil && f.InitialEpoch >= max(f.Epochs, 1) && !f.FastDevRun:
		return fmt.Errorf("InitialEpoch is %d and Epochs is %d: nothing is left to train\n  Epochs is the number of the last epoch, not how many more", f.InitialEpoch, max(f.Epochs, 1))
	case f.ValidationSplit < 0 || f.ValidationSplit >= 1 || math.IsNaN(f.ValidationSplit):
		return fmt.Errorf("ValidationSplit is %v, expected a share from 0 to below 1", f.ValidationSplit)
	case f.ValidationSplit != 0 && f.Validation != nil:
		return errors.New("both Validation and ValidationSplit are given, expected one: Validations takes further sets")
	case f.ValidationBatches != nil && (f.Validation != nil || f.ValidationSplit != 0):
		return errors.New("both ValidationBatches and a set to validate on are given, expected one: Validations takes further sets")
	case f.Validations["val"] != nil && (f.Validation != nil || f.ValidationSplit != 0 || f.ValidationBatches != nil):
		return errors.New(`a set "val" is in Validations, but that is the name of Validation: use another name`)
	case (f.ValidationEvery > 0 || f.ValidationSteps > 0 || f.ValidationBatchSize > 0 || len(f.ValidationAt) > 0 || f.SanityEvaluation) && !validated:
		return errors.New("there is a setting of the validation, but no set to validate on: set Validation, or leave ValidationEvery, At, Steps, BatchSize and SanityEvaluation out")
	case f.ValidationEvery > 0 && len(f.ValidationAt) > 0:
		return errors.New("both ValidationEvery and ValidationAt are given, expected one of them")
	}
	if err := f.checkCallbacks(); err != nil {
		return err
	}
	for i, change := range f.Augment {
		if change == nil {
			return fmt.Errorf("function %d of %d in Augment is nil", i+1, len(f.Augment))
		}
	}
	if f.OnDevice && len(f.Augment) > 0 {
		return errors.New("both OnDevice and Augment are given: the functions of Augment change batches on the host")
	}
	for _, epoch := range f.ValidationAt {
		if epoch < 1 || f.Until == nil && epoch > max(f.Epochs, 1) {
			return fmt.Errorf("ValidationAt has epoch %d, expected 1 to %d", epoch, max(f.Epochs, 1))
		}
	}
	for name, set := range f.Validations {
		if name == "" || set == nil || counting(set) == 0 {
			return fmt.Errorf("the set %q in Validations has no examples that count, or no name", name)
		}
	}
	if f.Validation != nil && counting(f.Validation) == 0 {
		return fmt.Errorf("the set Validation has no examples that count: expected at least one, and a field %q, if it has one, that is true for the examples that count", data.Mask)
	}
	return nil
}

func (f Fit) checkCallbacks() error {
	if _, err := (loop.Loop[*Model, data.Batch]{}).Plan(f.Callbacks...); err != nil {
		return err // in the run, the numbers of callbacks would count Fit's own
	}
	for i, option := range f.Callbacks {
		plan, err := loop.Loop[*Model, data.Batch]{}.Plan(option)
		if err != nil {
			continue
		}
		if plan.Until != nil {
			end := fmt.Sprintf("Epochs, %d", max(f.Epochs, 1))
			if f.Until != nil {
				end = fmt.Sprintf("Until, %s", f.Until)
			}
			return fmt.Errorf("option %d of %d in Callbacks also ends the run, by loop.Until(%s), in addition to %s: a run has one end: remove the option and set Fit.Until, without Epochs",
				i+1, len(f.Callbacks), plan.Until, end)
		}
		if plan.From != (loop.Elapsed{}) {
			return fmt.Errorf("option %d of %d in Callbacks sets where the run begins, by loop.Continue(%s): use InitialEpoch or checkpoint.Resume instead", i+1, len(f.Callbacks), loop.Steps(plan.From.Steps))
		}
	}
	return nil
}

func counting(set *data.Set) int { return data.Batch{Fields: set.Fields()}.Samples() }

// checkEnd refuses settings that the run never reaches: the loop's error would count only steps.
func (f Fit) checkEnd() error {
	epochs, end := max(f.Epochs, 1), fmt.Sprintf("Epochs is %d", max(f.Epochs, 1))
	switch until := f.Until.(type) {
	case nil:
	case loop.Epochs:
		epochs, end = int(until), fmt.Sprintf("Until is %s", until)
	case loop.Steps:
		epochs, end = int(until)/f.StepsPerEpoch, fmt.Sprintf("Until is %s, and an epoch has %s (StepsPerEpoch)", until, loop.Steps(f.StepsPerEpoch))
	default:
		return nil
	}
	switch {
	case f.Until != nil && f.Until.Length() == 0:
		return nil
	case epochs == 0:
		return fmt.Errorf("%s: no epoch would end, and only at the end of an epoch metrics are reset, the history gets a row and Validation is evaluated\n  set StepsPerEpoch to %d or less", end, f.Until)
	case f.ValidationEvery > epochs:
		return fmt.Errorf("ValidationEvery is %d epochs, and %s: there would be no test\n  set ValidationEvery to %d or less", f.ValidationEvery, end, epochs)
	}
	for _, at := range f.ValidationAt {
		if at > epochs {
			return fmt.Errorf("ValidationAt has epoch %d, and %s: expected 1 to %d", at, end, epochs)
		}
	}
	return nil
}
