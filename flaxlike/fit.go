package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// Fit says how [Model.Fit] trains. The zero value is one epoch with a progress bar on stderr.
type Fit struct {
	// Epochs is the number of the epoch to train to, 1 if it is 0; with InitialEpoch those before it are taken as done.
	Epochs, InitialEpoch int
	// Until is another end, as loop.Samples(1e6); Epochs must be 0 then.
	Until loop.Period
	// BatchSize is that of the model if it is 0. Examples that do not fill a batch are left out until the next epoch, where
	// others are; Keras trains on them in a smaller batch; we do not because each size of batch is a program to compile.
	BatchSize int
	// StepsPerEpoch is how many batches make an epoch; 0 stands for all of the set. The next epoch goes on where it ended.
	StepsPerEpoch int
	// InOrder leaves the examples unshuffled. Else their order is a function of the model's seed and the epoch.
	InOrder bool

	// Validation is tested on at the end of epochs; its entries end in _val. Validations are further sets, by that ending.
	Validation  *data.Set
	Validations map[string]*data.Set
	// ValidationSplit holds that share of the set back for Validation: its last examples, as they stand.
	ValidationSplit float64
	// ValidationEvery is after how many epochs to test, 1 if it is 0. ValidationSteps ends a test before its data does.
	ValidationEvery, ValidationSteps int

	// Callbacks are any options of a run: loop.StopEarly("loss_val", …), loop.KeepBest, loop.JSONL, ….
	Callbacks []loop.Option
	// Verbose says what to show, Output where; nil stands for os.Stderr.
	Verbose Verbosity
	Output  io.Writer
	// EachStep has the history keep a row for each step; else it has one for each epoch that was complete.
	EachStep bool

	// FastDevRun makes one training step and tests on one batch of each set, to see whether all of it works.
	FastDevRun bool
	// OverfitBatches trains and validates on the first so many batches alone: a model that works can learn them by heart.
	OverfitBatches int
	// SanityEvaluation tests on two batches of each set before the first step, so that a mistake shows before an epoch.
	SanityEvaluation bool
}

// Fit trains on a set, and gives the history: for each epoch the mean losses (avg_loss) and the metrics over its examples,
// "loss" of its last batch, and what was found in validation (loss_val, accuracy_val). It is never nil. A second Fit goes on
// with the state as it is.
//
// A context that is cancelled ends the run between two steps, with its cause as the error; see loop.WithSignals. A callback
// that asks to stop is no error.
//
// The history's loss of an epoch is "avg_loss"; Keras gives that name to "loss"; we keep both because the step's own loss
// shows what an average hides.
func (m *Model) Fit(ctx context.Context, set *data.Set, f Fit) (*loop.History, error) {
	history, err := m.fitSet(ctx, set, f)
	if err != nil {
		return history, fmt.Errorf("flaxlike: fit: %w", err)
	}
	return history, nil
}

// FitBatches is [Model.Fit] on batches that come one by one, from anywhere. StepsPerEpoch must be given; what is said of the
// order and shares of a set does not apply and must be zero. With an InitialEpoch, the batches must begin at that place.
func (m *Model) FitBatches(ctx context.Context, batches loop.Data[data.Batch], f Fit) (*loop.History, error) {
	err := f.check(m)
	switch {
	case err != nil:
	case f.StepsPerEpoch == 0 && !f.FastDevRun:
		err = errors.New("StepsPerEpoch is 0: nobody knows how many batches make an epoch, so say it")
	case f.InOrder, f.ValidationSplit != 0, f.OverfitBatches != 0:
		err = errors.New("InOrder, ValidationSplit and OverfitBatches are for sets: use Fit, or order and divide the batches yourself")
	case batches == nil:
		err = errors.New("the batches are nil")
	}
	history := new(loop.History)
	if err == nil {
		history, err = m.run(ctx, batches, f)
	}
	if err != nil {
		return history, fmt.Errorf("flaxlike: fit: %w", err)
	}
	return history, nil
}

func (m *Model) fitSet(ctx context.Context, set *data.Set, f Fit) (*loop.History, error) {
	none := new(loop.History)
	if err := f.check(m); err != nil {
		return none, err
	}
	if set == nil {
		return none, errors.New("the set to train on is nil")
	}
	size := cmp.Or(f.BatchSize, m.set.batchSize)
	if f.ValidationSplit != 0 {
		at := set.Len() - int(math.Round(f.ValidationSplit*float64(set.Len())))
		if at <= 0 || at == set.Len() {
			return none, fmt.Errorf("ValidationSplit is %v: one side of %d examples would be empty", f.ValidationSplit, set.Len())
		}
		var err error
		if f.Validation, err = set.Slice(at, set.Len()); err != nil {
			return none, err
		}
		if set, err = set.Slice(0, at); err != nil {
			return none, err
		}
	}
	if size > set.Len() {
		return none, fmt.Errorf("a batch of %d examples is larger than the %d to train on\n  set Fit.BatchSize to %d or less (the default is 32)", size, set.Len(), max(set.Len(), 1))
	}
	if f.OverfitBatches > 0 {
		var err error
		if set, err = set.Slice(0, min(f.OverfitBatches*size, set.Len()/size*size)); err != nil {
			return none, err
		}
		f.InOrder = true
		if f.Validation != nil {
			f.Validation = set
		}
	}
	if f.StepsPerEpoch == 0 {
		f.StepsPerEpoch = set.Len() / size
	}
	order := []data.Option{data.Forever(), data.Skip(int64(f.InitialEpoch) * int64(f.StepsPerEpoch))}
	if !f.InOrder {
		order = append(order, data.Shuffle(uint64(m.set.seed)))
	}
	return m.run(ctx, set.Batches(size, order...), f)
}

// run trains on batches of which the initial epochs are skipped already.
func (m *Model) run(ctx context.Context, batches loop.Data[data.Batch], f Fit) (*loop.History, error) {
	if f.FastDevRun {
		f.StepsPerEpoch, f.Epochs, f.Until, f.ValidationSteps, f.ValidationEvery = 1, f.InitialEpoch+1, nil, 1, 1
	}
	epoch := loop.Steps(f.StepsPerEpoch)
	tests := m.tests(f)
	if f.SanityEvaluation {
		for _, t := range tests {
			t.Length = loop.Steps(2)
			if _, err := t.Run(ctx, m); err != nil {
				return new(loop.History), fmt.Errorf("sanity evaluation on %q: %w", t.Name, err)
			}
		}
	}
	training := train.Loop[*Model, data.Batch]{Step: step{m.train}, Epoch: epoch, Reset: reset, Tests: tests}
	if f.ValidationEvery > 1 {
		training.Tests = nil
		for _, t := range tests {
			training.Tasks = append(training.Tasks, t.On(loop.Every(epoch*loop.Steps(f.ValidationEvery))))
		}
	}
	until := f.Until
	if until == nil {
		until = epoch * loop.Steps(max(f.Epochs, 1))
	}
	options := []loop.Option{loop.Until(until)}
	if f.InitialEpoch > 0 {
		done := loop.Elapsed{Steps: int64(epoch) * int64(f.InitialEpoch)}
		done.Samples = done.Steps * int64(cmp.Or(f.BatchSize, m.set.batchSize))
		options = append(options, loop.From(done, nil))
	}
	if !f.EachStep {
		options = append(options, loop.Keep(loop.Every(epoch)))
	}
	options = append(options, f.Verbose.options(f.Output, epoch, max(f.Epochs, 1), f.Until == nil)...)
	result, err := training.Run(ctx, m, batches, append(options, f.Callbacks...)...)
	if result.History == nil {
		result.History = new(loop.History)
	}
	return result.History, err
}

func reset(ctx context.Context, m *Model) (*Model, error) { return m.ResetStep(ctx) }

// tests are those of the validation sets, by their names.
func (m *Model) tests(f Fit) (tests []train.Test[*Model, data.Batch]) {
	sets := maps.Clone(f.Validations)
	if f.Validation != nil {
		if sets == nil {
			sets = map[string]*data.Set{}
		}
		sets["val"] = f.Validation
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		t := m.testOf(sets[name], cmp.Or(f.BatchSize, m.set.batchSize))
		t.Name = name
		if f.ValidationSteps > 0 {
			t.Length = loop.Steps(f.ValidationSteps)
		}
		tests = append(tests, t)
	}
	return tests
}

// check finds what makes no sense whatever the data.
func (f Fit) check(m *Model) error {
	for _, n := range []struct {
		name string
		n    int
	}{{"Epochs", f.Epochs}, {"InitialEpoch", f.InitialEpoch}, {"BatchSize", f.BatchSize}, {"StepsPerEpoch", f.StepsPerEpoch},
		{"ValidationEvery", f.ValidationEvery}, {"ValidationSteps", f.ValidationSteps}, {"OverfitBatches", f.OverfitBatches}} {
		if n.n < 0 {
			return fmt.Errorf("%s is %d, expected 0 (not given) or more", n.name, n.n)
		}
	}
	validated := f.Validation != nil || f.ValidationSplit != 0 || len(f.Validations) > 0
	switch {
	case f.Until != nil && f.Epochs > 0:
		return fmt.Errorf("both Epochs, %d, and Until, %s, are given: the run has one end", f.Epochs, f.Until)
	case f.Until == nil && f.InitialEpoch >= max(f.Epochs, 1) && !f.FastDevRun:
		return fmt.Errorf("InitialEpoch is %d and Epochs is %d: nothing is left to train\n  Epochs is the number of the last epoch, not how many more", f.InitialEpoch, max(f.Epochs, 1))
	case f.ValidationSplit < 0 || f.ValidationSplit >= 1 || math.IsNaN(f.ValidationSplit):
		return fmt.Errorf("ValidationSplit is %v, expected a share from 0 to below 1", f.ValidationSplit)
	case f.ValidationSplit != 0 && f.Validation != nil:
		return errors.New("both Validation and ValidationSplit are given, expected one: Validations takes further sets")
	case f.Validations["val"] != nil && (f.Validation != nil || f.ValidationSplit != 0):
		return errors.New(`a set "val" is in Validations, but that is the name of Validation: take another`)
	case (f.ValidationEvery > 0 || f.ValidationSteps > 0 || f.SanityEvaluation) && !validated:
		return errors.New("ValidationEvery, ValidationSteps or SanityEvaluation is set, but there is no set to validate on: set Validation")
	}
	for name, set := range f.Validations {
		if name == "" || set == nil || set.Len() == 0 {
			return fmt.Errorf("the set %q in Validations has no examples, or no name", name)
		}
	}
	if f.Validation != nil && f.Validation.Len() == 0 {
		return errors.New("the set Validation has no examples")
	}
	return f.Verbose.check()
}
