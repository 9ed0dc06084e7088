package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/train"
)

// Predict returns the outputs for a set's examples, in their order, without those that its [data.Mask] excludes. The
// set needs only inputs.
//
// Predictions of untrained weights are random, and no error. m.Describe().Card.Untrained reports it.
func (m *Model) Predict(ctx context.Context, set *data.Set, options ...loop.Option) (Prediction, error) {
	set, err := m.enterSet(set, false)
	var p Prediction
	if err == nil {
		p, err = m.predictAll(ctx, set, options)
	}
	if err != nil {
		return Prediction{}, fmt.Errorf("flaxlike: predict: %w", graphs.Inner(err))
	}
	return p, nil
}

func (m *Model) predictAll(ctx context.Context, set *data.Set, options []loop.Option) (Prediction, error) {
	if set == nil || set.Len() == 0 {
		return Prediction{}, errors.New("the set has no examples")
	}
	before := m.seen.changes.Load()
	after := func() int64 { return m.seen.changes.Load() }
	reader, end := m, func() error { return nil }
	if set.Len() > m.set.batchSize {
		var err error
		if reader, err = m.reading(ctx); err != nil {
			return Prediction{}, err
		}
		end = reader.view.Close
		of := after()
		after = func() int64 { return of }
	}
	var batches []map[string]data.Array
	var err error
	for outputs, failure := range predictions.All(ctx, reader, paddedBatches(set, m.set.batchSize), options...) {
		if err = failure; err == nil {
			batches = append(batches, outputs)
		}
	}
	if endErr := end(); err == nil {
		err = endErr
	}
	if err != nil {
		return Prediction{}, err
	}
	all := map[string]data.Array{}
	for name := range batches[0] {
		parts := make([]data.Array, len(batches))
		for i, b := range batches {
			parts[i] = b[name]
		}
		if all[name], err = join(parts); err != nil {
			return Prediction{}, fmt.Errorf("output %q: %w", name, err)
		}
	}
	return m.prediction(all, before, after()), nil
}

// PredictOne returns the outputs for one example, whose fields have no batch axis. For many examples Predict and
// serve.Batcher are faster. An example that the network cannot take is a serve.ErrInput.
func (m *Model) PredictOne(ctx context.Context, example ...data.Field) (Prediction, error) {
	batch := data.Batch{Fields: slices.Clone(example), Size: 1}
	var inputs []Input
	if m.set.preparation == nil {
		inputs = m.inputs()
	}
	for i, f := range example {
		k := slices.IndexFunc(inputs, func(in Input) bool { return in.Name == f.Name })
		if k >= 0 && len(inputs[k].Dims) != len(f.Array.Dims) {
			return Prediction{}, graphs.Input(fmt.Errorf("flaxlike: predict: field %q has dims %v, and that of an example is %v: leave the batch axis out, or use Predict",
				f.Name, f.Array.Dims, inputs[k].Dims))
		}
		batch.Fields[i].Array.Dims = append([]int{1}, f.Array.Dims...)
	}
	return m.PredictBatch(ctx, batch)
}

// PredictBatch is [Model.Predict] for a batch.
func (m *Model) PredictBatch(ctx context.Context, batch data.Batch) (Prediction, error) {
	before := m.seen.changes.Load()
	batch, err := m.enter(batch, false)
	var outputs map[string]data.Array
	if err == nil {
		outputs, err = m.outputsOf(ctx, batch)
	}
	if err == nil {
		if batch.Size == 0 && len(batch.Fields) > 0 {
			batch.Size = batch.Fields[0].Array.Len()
		}
		outputs, err = dropPadding(batch, outputs)
	}
	if err != nil {
		return Prediction{}, fmt.Errorf("flaxlike: predict: %w", graphs.Inner(err))
	}
	return m.prediction(outputs, before, m.seen.changes.Load()), nil
}

// PredictBatches iterates over the outputs of any source of batches. All use one set of weights. Each batch size is
// compiled separately.
func (m *Model) PredictBatches(ctx context.Context, batches loop.Source[data.Batch], options ...loop.Option) iter.Seq2[Prediction, error] {
	options = slices.Clone(options)
	return func(yield func(Prediction, error) bool) {
		failed := func(err error) bool {
			return yield(Prediction{}, fmt.Errorf("flaxlike: predict: %w", graphs.Inner(err)))
		}
		before := m.seen.changes.Load()
		reader, err := m.reading(ctx)
		if err != nil {
			failed(err)
			return
		}
		after, more := m.seen.changes.Load(), true
		for outputs, err := range predictions.All(ctx, reader, m.enterBatches(batches, false), options...) {
			if err != nil {
				more = false
				failed(err)
			} else {
				more = yield(m.prediction(outputs, before, after), nil)
			}
			if !more {
				break
			}
		}
		if err := reader.view.Close(); err != nil && more {
			failed(err)
		}
	}
}

// PredictRows is [Model.Predict] for rows of the table of [WithPreparation], maps from column name to value: a number,
// a text, a bool, or nil if it is missing. Each needs exactly the columns of the inputs.
func (m *Model) PredictRows(ctx context.Context, rows ...map[string]any) (Prediction, error) {
	if m.set.preparation == nil {
		return Prediction{}, errors.New("flaxlike: predict rows: the model has no preparation: give Predict a set of its inputs, or New WithPreparation")
	}
	table, err := m.set.preparation.Table(rows...)
	if err != nil {
		return Prediction{}, fmt.Errorf("flaxlike: predict rows: %w", graphs.Input(graphs.Inner(err)))
	}
	return m.Predict(ctx, table)
}

// Answer returns the arrays that package serve sends for a batch of inputs. An output of classes becomes
// OUTPUT_probability, as [Prediction.Probabilities], and OUTPUT_class, as [Prediction.Classes] or their names, with
// "" for an absent one of several. Other outputs are unchanged. An outdated calibration or thresholds
// ([ErrOutdated]), or NaN, are an error, which is returned with the other outputs.
func (m *Model) Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	p, err := m.PredictBatch(ctx, batch)
	if err != nil {
		return nil, err
	}
	return p.Answers()
}

// prediction's calibration, thresholds and class names are current if their count of changes equals before and after,
// those around the reading of the weights.
func (m *Model) prediction(outputs map[string]data.Array, before, after int64) Prediction {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	p := Prediction{outputs: outputs, of: map[string]answering{}}
	for name := range outputs {
		names := namesOf(m.namesLocked(), name, len(outputs))
		c, hasC := m.seen.calibrations[name]
		t, hasT := m.seen.thresholds[name]
		p.of[name] = answering{output: name, odds: m.seen.odds[name], calibration: c.values, thresholds: t.values, names: names,
			oldCalibration: hasC && (c.at != before || c.at != after), oldThresholds: hasT && (t.at != before || t.at != after)}
	}
	return p
}

var predictions = train.Predict[*Model, data.Batch, map[string]data.Array]{
	Step: func(ctx context.Context, m *Model, batch data.Batch) (map[string]data.Array, error) {
		outputs, err := m.outputsOf(ctx, batch)
		if err != nil {
			return nil, err
		}
		return dropPadding(batch, outputs)
	},
}

func paddedBatches(set *data.Set, size int) loop.Data[data.Batch] {
	size = min(size, cmp.Or(set.Len(), 1))
	return func(yield func(data.Batch, error) bool) {
		for b, err := range set.Batches(size, data.Kept).All() {
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

func (m *Model) outputsOf(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	known, logs := len(m.seen.allBounds()), loop.Logs{}
	err := graphs.Input(m.seen.look(batch, true))
	if err == nil {
		logs, err = m.one(ctx, m.predict, batch)
	}
	if err == nil && len(m.seen.allBounds()) > known {
		err = graphs.Input(m.seen.look(batch, true))
	}
	if err != nil {
		return nil, err
	}
	outputs := map[string]data.Array{}
	for e := range logs.All() {
		if e.IsNumber() || e.Collection != loop.Outputs {
			continue
		}
		v, err := e.Any()
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", e.Name, err)
		}
		if outputs[e.Name], err = managed.ArrayOf(v.(*tensors.Tensor)); err != nil {
			return nil, fmt.Errorf("output %q: %w", e.Name, err)
		}
	}
	return outputs, m.dropLeftover(batch, outputs)
}

// ofOtherInputs adds the fields that differ from the build's to an error: networks may take other lengths.
func (m *Model) ofOtherInputs(batch data.Batch, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	for _, in := range m.inputs() {
		f, none := batch.Field(in.Name)
		if none == nil && len(f.Dims) > 0 && (f.DType() != in.Type || !slices.Equal(f.Dims[1:], in.Dims)) {
			err = graphs.Input(fmt.Errorf("field %q is %s%v for an example, and was %s%v when the network was built\n  %w", in.Name, f.DType(), f.Dims[1:], in.Type, in.Dims, graphs.Inner(err)))
		}
	}
	return err
}

func (m *Model) dropLeftover(batch data.Batch, outputs map[string]data.Array) error {
	rows, whole := batch.Fields[0].Array.Len(), true
	for _, a := range outputs {
		whole = whole && len(a.Dims) > 0 && a.Len() == rows
	}
	if whole { // asking the state would wait for it
		return nil
	}
	given, err := m.state.Strategy().Batch(batch)
	if err != nil {
		return err
	}
	got := given.Fields[0].Array.Len()
	for name, a := range outputs {
		if got > rows && len(a.Dims) > 0 && a.Len() == got {
			outputs[name] = a.Slice(0, rows)
		}
	}
	return nil
}

func dropPadding(batch data.Batch, outputs map[string]data.Array) (map[string]data.Array, error) {
	rows, first := batch.Fields[0].Array.Len(), true
	mask, _ := batch.Field(data.Mask) // also of a Resident
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
			return nil, fmt.Errorf("output %q has dims %v for %d examples: the first axis of an output counts the examples; for an output without that axis, write a custom step (managed.TestStep)", name, a.Dims, rows)
		}
		outputs[name] = a.Slice(0, len(real))
		if !first {
			outputs[name] = a.Gather(real)
		}
	}
	return outputs, nil
}
