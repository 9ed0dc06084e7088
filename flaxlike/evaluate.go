package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/train"
)

// Evaluate gives the losses and metrics over all examples of a set, by name: "loss", "accuracy". Figures that are
// arrays, as a confusion matrix, are not among them: the logs of train.TestOf have these. Options are those of the run:
// loop.Until(loop.Steps(10)) takes ten batches, callbacks.ProgressBar shows how far it is.
func (m *Model) Evaluate(ctx context.Context, set *data.Set, options ...loop.Option) (map[string]float64, error) {
	if set == nil || counting(set) == 0 {
		return nil, errors.New("flaxlike: evaluate: the set has no examples that count")
	}
	return m.evaluate(ctx, m.testOf(set, m.set.batchSize), options)
}

// EvaluateBatches is [Model.Evaluate] on batches that come one by one, from anywhere. Each size of batch is a program
// to compile; data.Pad makes a last one as large as the others.
func (m *Model) EvaluateBatches(ctx context.Context, batches loop.Source[data.Batch], options ...loop.Option) (map[string]float64, error) {
	if batches == nil {
		return nil, errors.New("flaxlike: evaluate: the batches are nil")
	}
	return m.evaluate(ctx, m.testOn(batches), options)
}

func (m *Model) evaluate(ctx context.Context, test evaluation, options []loop.Option) (map[string]float64, error) {
	reader, err := m.reading(ctx)
	if err != nil {
		return nil, fmt.Errorf("flaxlike: evaluate: %w", graphs.Inner(err))
	}
	_, logs, err := test.Run(ctx, reader, options...)
	if endErr := reader.view.Close(); err == nil {
		err = endErr
	}
	if err != nil {
		return nil, fmt.Errorf("flaxlike: evaluate: %w", graphs.Inner(err))
	}
	found := map[string]float64{}
	for e := range logs.All() {
		if _, whole := e.Value.(loop.Payload); whole {
			continue
		}
		if found[e.Name], err = e.Value.Float(); err != nil {
			return nil, fmt.Errorf("flaxlike: evaluate: %s: %w", e.Path(), err)
		}
	}
	m.noteEvaluated(found)
	return found, nil
}

// reading is the model as it is now, for tests and predictions beside whatever else it does.
func (m *Model) reading(ctx context.Context) (*Model, error) {
	view, err := m.View(ctx)
	reader := *m
	reader.view = view
	return &reader, err
}

// evaluation is a test by a step.
type evaluation struct {
	loop.Evaluation[*Model, data.Batch]
	step step
}

// testOn tests on batches as they come.
func (m *Model) testOn(batches loop.Source[data.Batch]) evaluation {
	return testBy(step{of: m.test, means: true}, batches)
}

// testBy is a test with the names of Keras. Its figures are means over its batches: see step.BeginEvaluation.
func testBy(s step, batches loop.Source[data.Batch]) evaluation {
	e := evaluation{loop.Evaluate[*Model, data.Batch]("", s, batches), s}
	e.Prefix = true
	e.Aggregate = loop.Aggregations{loop.Losses: loop.Last, loop.Metrics: loop.Last}
	return e
}

// testOf tests on a set. Where its examples do not divide evenly, all batches get a mask, so that one program does; but
// for a model that has a figure of the whole batch, as a mean of its outputs, the last batch is a smaller one, and has
// a program of its own.
func (m *Model) testOf(set *data.Set, size int) evaluation {
	batches := set.Batches(size, data.KeepRemainder())
	if set.Len()%size == 0 {
		return testBy(m.stepOn(m.test, set), batches)
	}
	return testBy(m.stepOn(m.test, set), loop.From(func(position int64) iter.Seq2[data.Batch, error] {
		padded := data.Map(batches.From(position), func(b data.Batch) (data.Batch, error) { return data.Pad(b, size) })
		if m.takesNoPadding(context.Background(), padded) {
			return batches.From(position)
		}
		return padded
	}))
}

// takesNoPadding tells whether the test step reports a number that a padded batch would make wrong.
func (m *Model) takesNoPadding(ctx context.Context, batches iter.Seq2[data.Batch, error]) bool {
	batch, err := data.Peek(batches)
	if err == nil {
		err = m.test.Prepare(ctx, m.State, batch)
	}
	return errors.Is(err, managed.ErrPadded) // another error the step will tell
}

// Predict gives the outputs for all examples of a set, in their order and by name; that of a [Layer] is "preds". The
// set needs the inputs alone. Rows that its [data.Mask] says are no examples have no output.
func (m *Model) Predict(ctx context.Context, set *data.Set, options ...loop.Option) (map[string]data.Array, error) {
	if set == nil || set.Len() == 0 {
		return nil, errors.New("flaxlike: predict: the set has no examples")
	}
	reader, end := m, func() error { return nil }
	if set.Len() > m.set.batchSize { // one batch has the state to itself anyway
		var err error
		if reader, err = m.reading(ctx); err != nil {
			return nil, fmt.Errorf("flaxlike: predict: %w", graphs.Inner(err))
		}
		end = reader.view.Close
	}
	var batches []map[string]data.Array
	var err error
	for outputs, failure := range predictions.All(ctx, reader, padded(set, m.set.batchSize), options...) {
		if err = failure; err == nil {
			batches = append(batches, outputs)
		}
	}
	if endErr := end(); err == nil {
		err = endErr
	}
	if err != nil {
		return nil, fmt.Errorf("flaxlike: predict: %w", graphs.Inner(err))
	}
	all := map[string]data.Array{}
	for name := range batches[0] {
		parts := make([]data.Array, len(batches))
		for i, b := range batches {
			parts[i] = b[name]
		}
		all[name] = join(parts)
	}
	return all, nil
}

// predictions are the outputs of batches, without the rows of padding.
var predictions = train.Predict[*Model, data.Batch, map[string]data.Array]{
	Step: func(ctx context.Context, m *Model, batch data.Batch) (map[string]data.Array, error) {
		outputs, err := m.PredictStep(ctx, batch)
		if err != nil {
			return nil, err
		}
		return dropPadding(batch, outputs)
	},
}

// padded are batches of one size, the last one filled up, without a mask: its rows are cut off again.
func padded(set *data.Set, size int) loop.Data[data.Batch] {
	size = min(size, cmp.Or(set.Len(), 1))
	return func(yield func(data.Batch, error) bool) {
		for b, err := range set.Batches(size, data.KeepRemainder()).All() {
			if err == nil && b.Fields[0].Array.Len() < size {
				n := len(b.Fields)
				b, err = data.Pad(b, size)
				if err == nil {
					b.Fields = b.Fields[:n]
				}
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// dropLeftover takes off the rows that the strategy has put behind a batch's own, for its devices to divide.
func (m *Model) dropLeftover(batch data.Batch, outputs map[string]data.Array) error {
	rows, whole := batch.Fields[0].Array.Len(), true
	for _, a := range outputs {
		whole = whole && len(a.Dims) > 0 && a.Len() == rows
	}
	if whole { // as nearly always: to ask the state would be to wait for it a second time
		return nil
	}
	given, err := m.Strategy().Batch(batch)
	if err != nil {
		return fmt.Errorf("flaxlike: predict: %w", err)
	}
	got := given.Fields[0].Array.Len()
	if got < rows {
		return fmt.Errorf("flaxlike: predict: strategies.DropLeftover left out %d of the batch's %d examples: take strategies.PadLeftover", rows-got, rows)
	}
	for name, a := range outputs {
		if got > rows && len(a.Dims) > 0 && a.Len() == got {
			outputs[name] = a.Slice(0, rows)
		}
	}
	return nil
}

// dropPadding keeps the rows of examples: those that the mask says count, else the first, as many as Size counts.
func dropPadding(batch data.Batch, outputs map[string]data.Array) (map[string]data.Array, error) {
	rows, first := batch.Fields[0].Array.Len(), true
	mask, _ := batch.Get(data.Mask)
	counts, masked := mask.Flat.([]bool)
	masked = masked && len(mask.Dims) == 1 && len(counts) == rows
	real := make([]int, 0, rows)
	for i := range rows {
		if masked && counts[i] || !masked && i < batch.Size {
			first = first && len(real) == i
			real = append(real, i)
		}
	}
	for name, a := range outputs {
		if len(a.Dims) == 0 || a.Len() != rows {
			return nil, fmt.Errorf("output %q has dims %v for %d examples: the rows of batches cannot be joined, use PredictStep", name, a.Dims, rows)
		}
		outputs[name] = a.Slice(0, len(real))
		if !first {
			outputs[name] = a.Gather(real)
		}
	}
	return outputs, nil
}
