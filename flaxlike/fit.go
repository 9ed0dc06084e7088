package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/strategies"
)

// Fit says how [Model.Fit] trains. The zero value is one epoch with a progress bar on stderr.
type Fit struct {
	// Epochs is the number of the epoch to train to, 1 if it is 0; with InitialEpoch those before it are taken as done.
	Epochs, InitialEpoch int
	// Until is another end, as loop.Samples(1e6); Epochs must be 0 then.
	Until loop.Period
	// BatchSize is that of the model if it is 0. Examples that do not fill a batch are a smaller one at the end of each
	// epoch, which is a second program to compile; where the strategy cannot divide it among its devices, it is padded.
	BatchSize int
	// StepsPerEpoch is the number of batches of an epoch; 0 stands for all of the set. The next epoch goes on where it
	// ended. A run that goes on from Checkpoints counts its epochs on, even if the set, BatchSize or StepsPerEpoch has
	// changed.
	StepsPerEpoch int
	// OnDevice keeps the set that is trained on where the steps run: see data.OnDevice. It is for a device with memory
	// of its own.
	OnDevice bool
	// Augment are functions that each batch is given to before it is trained on, in their order; those of a validation
	// are not. They are called on several goroutines and ahead of the steps, and should be pure functions of their
	// batch, as data.Augment, data.MixUp and data.CutMix give. A batch of a set is theirs to change.
	Augment []func(data.Batch) (data.Batch, error)
	// InOrder leaves the examples unshuffled. Else their order is a function of the model's seed and the epoch.
	InOrder bool

	// Validation is tested on at the end of epochs; its entries begin with val_. Validations are further sets, by the
	// names that their entries begin with.
	Validation  *data.Set
	Validations map[string]*data.Set
	// ValidationBatches are batches to test on in place of a set. Each test takes them from their beginning to their end,
	// or makes ValidationSteps; the batches of a set end with its first epoch. The first batch is also taken before the
	// first step. Each size of batch is a program to compile.
	ValidationBatches loop.Source[data.Batch]
	// ValidationSplit holds that share of the set back for Validation: its last examples, as they stand.
	ValidationSplit float64
	// ValidationEvery is after how many epochs to test, 1 if it is 0; ValidationAt are the epochs after which to test
	// instead, counted from 1. ValidationSteps ends a test before its data does. ValidationBatchSize is that of
	// training if it is 0.
	ValidationEvery, ValidationSteps, ValidationBatchSize int
	ValidationAt                                          []int

	// OnEpochEnd is called at the end of each epoch, after its validation, with the epoch's number, from 1 on, and its
	// figures: figures.Float("val_loss") is the one of that name in the history, or an error that wraps loop.ErrNoEntry
	// if the epoch has none. With loop.ErrStop the run ends in order; another error is Fit's. The context is that of
	// the training: with it the model can test and predict, where several processes train it too.
	OnEpochEnd func(ctx context.Context, epoch int, figures loop.Logs) error
	// Callbacks are any options of a run: callbacks.StopEarly("val_loss", …), callbacks.KeepBest, callbacks.JSONL, ….
	// Where the run begins and ends the fields of Fit say: a loop.Until or loop.Continue among them is an error.
	Callbacks []loop.Option
	// Checkpoints is a folder that the run is saved into and resumed from, as checkpoint.Resume does it: it is saved after
	// each CheckpointEvery, which stands for an epoch if it is nil, and at the end, also of a run that was interrupted.
	// A program that was killed is started again as it was, and ends with the same parameters, bit for bit, as one that
	// never was. It makes no step if that run had come to its end, or a callback had stopped it: more Epochs let it go
	// on; after a callbacks.StopEarly only more patience does. With a callbacks.KeepBest and a best value of the
	// earlier process, the run ends with an error, because that copy is gone. The option checkpoint.KeepBest
	// restores the best from the folder: leave Checkpoints out, and give checkpoint.Resume with it among the Callbacks.
	Checkpoints     *checkpoint.Folder
	CheckpointEvery loop.Period
	// Changed is called for each setting of a resumed run that differs from the saved one: before the first step for
	// optimizer, policy, seed and versions, right after it for batch size, data and order. An error ends the run.
	// A line of Output shows each, too. See checkpoint.Options for which value counts.
	Changed func(checkpoint.Difference) error
	// Output is where the run shows a progress bar, or a line for each epoch where it is no terminal or Lines is set:
	// os.Stderr if it is nil, nowhere if it is io.Discard. What is written to a callbacks.Lines that is the Output, as by
	// a logger, stands above the bar.
	Output io.Writer
	Lines  bool
	// EachStep has the history keep a row for each step, with the means since the epoch began; else it has one for each
	// epoch that was complete.
	EachStep bool

	// FastDevRun makes one training step and tests on one batch of each set, to see whether everything works. It saves
	// nothing.
	FastDevRun bool
	// OverfitBatches trains and validates on the first so many batches alone: a model that works can fit them exactly.
	OverfitBatches int
	// SanityEvaluation tests on two batches of each set before the first step, so that a mistake shows before an epoch.
	SanityEvaluation bool
}

// Fit trains on a set, and gives the history: for each epoch the means of losses and metrics over its examples, what
// was found in validation (val_loss, val_accuracy), the learning rate in force at its end (learning_rate; of groups
// with rates of their own learning_rate_<group>; none where a chain has no one rate, as where it scales before Adam),
// and its number from 1 on (epoch). "loss" is the sum of all that is trained on: the losses, each with its weight,
// those that the network reports, and penalties. Of several losses, each is there too, as <output>_loss or, of a
// function, by its Name, before its weight.
//
// The history is never nil. A second Fit goes on with the state as it is. Callbacks that follow an entry see it at the
// ends of epochs, so that callbacks.Evaluations are epochs; one of an entry that the run will not log is an error
// before the first step. Those that look at each step see the means since the epoch began.
//
// A context that is cancelled ends the run between two steps, with its cause as the error; see loop.WithSignals. Where
// batches do not come, it ends within a second all the same, with loop.ErrSourceLeft in the error; a compilation ends
// first. A callback that asks to stop is no error.
func (m *Model) Fit(ctx context.Context, set *data.Set, f Fit) (*loop.History, error) {
	history, err := m.fitSet(ctx, set, f)
	if err != nil {
		return history, fmt.Errorf("flaxlike: fit: %w", graphs.Inner(err))
	}
	return history, nil
}

// FitBatches is [Model.Fit] on batches that come one by one, from anywhere. StepsPerEpoch must be given; the settings
// for the order and the shares of a set must be zero. A batch must have memory of its own and stay as it is once it was
// given: up to a hundred are held for a block of steps, so a source that fills one buffer again and again trains on
// other data.
//
// With an InitialEpoch, and after a checkpoint, the run takes the batches after those of the earlier steps. The batches
// of a set ([data.Set.Batches]) and a [loop.From] begin there. A plain iterator ([loop.Data]) is ranged over from its
// start, once, and the earlier batches are left out. Batches that end before the run does are an error, [ErrDataEnded].
func (m *Model) FitBatches(ctx context.Context, batches loop.Source[data.Batch], f Fit) (*loop.History, error) {
	err := f.check(m)
	switch {
	case err != nil:
	case f.StepsPerEpoch == 0 && !f.FastDevRun:
		err = errors.New("StepsPerEpoch is 0: nobody knows how many batches make an epoch, so say it")
	case f.InOrder, f.OnDevice, f.ValidationSplit != 0, f.OverfitBatches != 0:
		err = errors.New("InOrder, OnDevice, ValidationSplit and OverfitBatches are for sets: use Fit, or order and divide the batches yourself (data.OnDevice)")
	case batches == nil:
		err = errors.New("the batches are nil")
	}
	plain, isPlain := batches.(loop.Data[data.Batch])
	if err == nil && isPlain && plain == nil {
		err = errors.New("the batches are nil")
	}
	history := new(loop.History)
	if err == nil {
		source := loop.From(func(position int64) iter.Seq2[data.Batch, error] { return f.augmented(batches.From(position)) })
		if isPlain { // skipped after the changes, which number the batches
			source = loop.Data[data.Batch](f.augmented(iter.Seq2[data.Batch, error](plain)))
		}
		history, err = m.run(ctx, f, step{of: m.train, means: true, stream: new(stream)}, nil, source)
	}
	if err != nil {
		return history, fmt.Errorf("flaxlike: fit: %w", graphs.Inner(err))
	}
	return history, nil
}

// augmented are batches behind the functions of Augment.
func (f Fit) augmented(batches iter.Seq2[data.Batch, error]) iter.Seq2[data.Batch, error] {
	for _, change := range f.Augment {
		batches = data.ParallelMap(batches, runtime.GOMAXPROCS(0), change)
	}
	return batches
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
	if set.Len() == 0 {
		return none, errors.New("the set to train on has no examples")
	}
	if f.OverfitBatches > 0 {
		var err error
		if set, err = set.Slice(0, min(f.OverfitBatches*size, set.Len())); err != nil {
			return none, err
		}
		f.InOrder = true
		if f.Validation != nil {
			f.Validation = set
		}
	}
	if f.StepsPerEpoch == 0 {
		f.StepsPerEpoch = (set.Len() + size - 1) / size
	}
	order, rest := []data.Option(nil), set.Len()%size != 0
	if rest {
		order = append(order, data.KeepRemainder())
	}
	if !f.InOrder {
		order = append(order, data.Shuffle(uint64(m.set.seed)))
	}
	augmented := set
	for _, change := range f.Augment {
		var err error
		if augmented, err = augmented.MapBatches(change); err != nil {
			return none, err
		}
	}
	dealt := augmented.Batches
	if f.OnDevice {
		dealt = data.OnDevice(set).Batches
	}
	training := m.stepOn(m.train, augmented)
	training.part = f.OverfitBatches > 0
	return m.run(ctx, f, training, set, loop.From(func(position int64) iter.Seq2[data.Batch, error] {
		if batches := dealt(size, order...).From(position); !rest {
			return batches
		} else {
			return m.divided(batches, size)
		}
	}))
}

// divided pads the batches that end an epoch where the strategy cannot divide them among its devices.
func (m *Model) divided(batches iter.Seq2[data.Batch, error], size int) iter.Seq2[data.Batch, error] {
	return data.Map(batches, func(b data.Batch) (data.Batch, error) {
		if rows, err := b.Rows(); err == nil && rows < size {
			if _, err := m.state.Strategy().Batch(b); errors.Is(err, strategies.ErrLeftover) {
				return data.Pad(b, size)
			}
		}
		return b, nil
	})
}
