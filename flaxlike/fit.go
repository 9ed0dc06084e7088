package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/strategies"
)

// Fit trains on a set and returns the history, which is never nil. It has a row for each epoch:
//
//   - loss, the weighted sum of all trained losses, including penalties and the network's own; of several also each
//     before its weight, as <output>_loss or by the Name of a function;
//   - metrics, means over the examples of the epoch;
//   - the results of validation, like val_loss;
//   - learning_rate, at the epoch's end, or learning_rate_<group> for groups with their own rates; absent if the
//     chain has no single rate, as when it scales before Adam;
//   - epoch, its number, from 1.
//
// An entry for which a callback waits, and that is never logged, is an error before the first step.
//
// A cancelled context ends the run between two steps, after a running compilation, and returns its cause. If the source
// blocks, the run ends within a second with a loop.ErrSourceLeft. A callback that stops the run is no error.
func (m *Model) Fit(ctx context.Context, set *data.Set, f Fit) (*loop.History, error) {
	history, err := m.fitSet(ctx, set, f)
	if err != nil {
		return history, fmt.Errorf("flaxlike: fit: %w", graphs.Inner(err))
	}
	return history, nil
}

// FitBatches is [Model.Fit] for any source of batches. StepsPerEpoch is required. InOrder, OnDevice, ValidationSplit
// and OverfitBatches must be zero. Each batch must own its memory and not change later: up to a hundred wait for a
// block of steps.
//
// A resumed run continues after the earlier steps' batches; of a plain iterator ([loop.Data]), read once, it skips
// them. Batches that end before the run are an [ErrDataEnded].
func (m *Model) FitBatches(ctx context.Context, batches loop.Source[data.Batch], f Fit) (*loop.History, error) {
	err := f.checkSettings()
	switch {
	case err != nil:
	case f.StepsPerEpoch == 0 && !f.FastDevRun:
		err = errors.New("StepsPerEpoch is 0, and the number of batches in an epoch is unknown: set StepsPerEpoch")
	case f.InOrder, f.OnDevice, f.ValidationSplit != 0, f.OverfitBatches != 0:
		err = errors.New("InOrder, OnDevice, ValidationSplit and OverfitBatches are only for sets: use Fit, or order and divide the batches yourself (data.OnDevice)")
	case batches == nil:
		err = errors.New("the batches are nil")
	}
	plain, isPlain := batches.(loop.Data[data.Batch])
	if err == nil && isPlain && plain == nil {
		err = errors.New("the batches are nil")
	}
	history := new(loop.History)
	if err == nil {
		f, err = m.enterValidation(f)
	}
	if err == nil {
		batches = m.enterBatches(batches, true)
		plain, _ = batches.(loop.Data[data.Batch])
		source := loop.From(func(position int64) iter.Seq2[data.Batch, error] { return f.augmented(batches.From(position)) })
		if isPlain {
			source = loop.Data[data.Batch](f.augmented(iter.Seq2[data.Batch, error](plain)))
		}
		history, err = m.run(ctx, f, step{of: m.train, means: true, stream: new(stream)}, nil, source)
	}
	if err != nil {
		return history, fmt.Errorf("flaxlike: fit: %w", graphs.Inner(err))
	}
	return history, nil
}

func (m *Model) fitSet(ctx context.Context, set *data.Set, f Fit) (*loop.History, error) {
	none := new(loop.History)
	if err := f.checkSettings(); err != nil {
		return none, err
	}
	if set == nil {
		return none, errors.New("the set to train on is nil")
	}
	m.nameClasses(set)
	set, err := m.enterSet(set, true)
	if err == nil {
		f, err = m.enterValidation(f)
	}
	if err != nil {
		return none, err
	}
	size := cmp.Or(f.BatchSize, m.set.batchSize)
	if f.ValidationSplit != 0 {
		at := set.Len() - int(math.Round(f.ValidationSplit*float64(set.Len())))
		if at <= 0 || at == set.Len() {
			return none, fmt.Errorf("ValidationSplit is %v: one side of %d examples would be empty", f.ValidationSplit, set.Len())
		}
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
		order = append(order, data.Kept)
	}
	if !f.InOrder {
		order = append(order, data.Shuffle(uint64(m.set.seed)))
	}
	augmented := set
	for _, change := range f.Augment {
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

func (m *Model) divided(batches iter.Seq2[data.Batch, error], size int) iter.Seq2[data.Batch, error] {
	return changed(batches, func(b data.Batch) (data.Batch, error) {
		if rows, err := b.Rows(); err == nil && rows < size {
			if _, err := m.state.Strategy().Batch(b); errors.Is(err, strategies.ErrLeftover) {
				return data.Pad(b, size)
			}
		}
		return b, nil
	})
}
