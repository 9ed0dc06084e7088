package flaxlike

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"runtime"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// Fit has the settings of [Model.Fit]. The zero value trains one epoch, with a progress bar.
type Fit struct {
	// Epochs is the last epoch, default 1; InitialEpoch epochs count as done.
	Epochs, InitialEpoch int
	// Until replaces Epochs, like loop.Samples(1e6).
	Until loop.Period
	// BatchSize is by default the model's. A smaller last batch is compiled as a second program, or padded if the
	// devices do not divide it.
	BatchSize int
	// StepsPerEpoch is by default the number of batches in the set. The next epoch continues in the data where the
	// last one ended.
	StepsPerEpoch int
	// OnDevice keeps the training set in device memory (data.OnDevice).
	OnDevice bool
	// Augment changes each training batch, in order, as images.Augment and images.MixUp, possibly in place, on
	// several goroutines: let them depend on their batch alone.
	Augment []func(data.Batch) (data.Batch, error)
	// InOrder disables shuffling.
	InOrder bool

	// Validation is evaluated at the end of epochs; its entries begin with val_, those of Validations with their names.
	Validation  *data.Set
	Validations map[string]*data.Set
	// ValidationBatches replaces Validation. An evaluation takes ValidationSteps, or all batches: of a set, one
	// epoch.
	ValidationBatches loop.Source[data.Batch]
	// ValidationSplit is the set's share held out for Validation: its last examples, unshuffled.
	ValidationSplit float64
	// ValidationEvery is the number of epochs between evaluations, default 1; ValidationAt lists epochs instead, from
	// 1. ValidationSteps limits an evaluation's batches. ValidationBatchSize is by default BatchSize.
	ValidationEvery, ValidationSteps, ValidationBatchSize int
	ValidationAt                                          []int

	// Callbacks are options of the run, like callbacks.StopEarly("val_loss", …), but not loop.Until or loop.Continue.
	//
	// loop.Watch(loop.Every(loop.Epochs(1)), f) calls f after each epoch and its validation. With the context of f,
	// the model can evaluate and predict, also if several processes train it.
	//
	// checkpoint.Resume(dir, checkpoint.Every(loop.Epochs(1))) saves the run, and resumes it. An ended run continues
	// with more Epochs, or more patience after a callbacks.StopEarly.
	Callbacks []loop.Option
	// Output receives a progress bar, or a line for each epoch if it is no terminal or Lines is set. The default is
	// os.Stderr; io.Discard disables it.
	Output io.Writer
	Lines  bool
	// EachStep adds a row to the history for each step, with means since the epoch began.
	EachStep bool

	// FastDevRun makes one training step and evaluates one batch of each set, without checkpoints.
	FastDevRun bool
	// OverfitBatches trains and validates on the set's first batches, this many, in order: a correct model fits
	// them exactly.
	OverfitBatches int
	// SanityEvaluation evaluates two batches of each set before the first step.
	SanityEvaluation bool
}

func (f Fit) checkSettings() error {
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

// checkEnd: the loop's error would count only steps.
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

func (f Fit) augmented(batches iter.Seq2[data.Batch, error]) iter.Seq2[data.Batch, error] {
	for _, change := range f.Augment {
		batches = data.ParallelMap(batches, runtime.GOMAXPROCS(0), change)
	}
	return batches
}

func (f Fit) testing() loop.Schedule {
	if len(f.ValidationAt) == 0 {
		return loop.Every(loop.Epochs(f.ValidationEvery))
	}
	at := loop.Never
	for _, n := range f.ValidationAt {
		at = at.Or(loop.At(loop.Epochs(n)))
	}
	return at
}

func (f Fit) bar(w io.Writer) loop.Callback {
	if f.Lines {
		w = struct{ io.Writer }{w} // hides that it is a terminal
	}
	return callbacks.ProgressBar(w, callbacks.Bar{Epoch: loop.Epochs(1), EpochSteps: loop.Steps(f.StepsPerEpoch), Off: f.Output == io.Discard})
}

func linesTo(w io.Writer) *callbacks.Lines {
	if lines, ok := w.(*callbacks.Lines); ok {
		return lines
	}
	if w == nil {
		w = os.Stderr
	}
	return &callbacks.Lines{Out: w} // a closed pipe does not end the program
}
