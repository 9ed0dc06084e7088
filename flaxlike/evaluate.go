package flaxlike

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

// Evaluate returns the losses and metrics over a set's examples, by name: "accuracy". It omits arrays, which
// train.TestOf logs.
func (m *Model) Evaluate(ctx context.Context, set *data.Set, options ...loop.Option) (map[string]float64, error) {
	if set == nil || counting(set) == 0 {
		return nil, errors.New("flaxlike: evaluate: the set has no examples that count")
	}
	set, err := m.enterSet(set, true)
	if err != nil {
		return nil, fmt.Errorf("flaxlike: evaluate: %w", graphs.Inner(err))
	}
	return m.evaluate(ctx, m.testOf(set, m.set.batchSize), options)
}

// EvaluateBatches is [Model.Evaluate] for any source of batches. Each batch size is compiled separately; data.Pad
// avoids this.
func (m *Model) EvaluateBatches(ctx context.Context, batches loop.Source[data.Batch], options ...loop.Option) (map[string]float64, error) {
	if batches == nil {
		return nil, errors.New("flaxlike: evaluate: the batches are nil")
	}
	return m.evaluate(ctx, m.testOn(m.enterBatches(batches, true)), options)
}

func (m *Model) evaluate(ctx context.Context, test evaluation, options []loop.Option) (map[string]float64, error) {
	at := m.seen.changes.Load()
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
		if !e.IsNumber() {
			continue
		}
		if found[e.Name], err = e.Value.Float(); err != nil {
			return nil, fmt.Errorf("flaxlike: evaluate: %s: %w", e.Path(), err)
		}
	}
	m.noteEvaluated(found, at)
	return found, nil
}

func (m *Model) reading(ctx context.Context) (*Model, error) {
	view, err := m.state.View(ctx)
	reader := *m
	reader.view = view
	return &reader, err
}

func (m *Model) testOn(batches loop.Source[data.Batch]) evaluation {
	return testBy(step{of: m.test, means: true, stream: new(stream)}, batches)
}

func testBy(s step, batches loop.Source[data.Batch]) evaluation {
	e := evaluation{loop.Evaluate[*Model, data.Batch]("", s, batches), s}
	e.Prefix = true
	e.Aggregate = map[loop.Collection]loop.Aggregation{loop.Losses: {}, loop.Metrics: {}}
	return e
}

// testOf pads a smaller last batch unless a figure is of a whole batch.
func (m *Model) testOf(set *data.Set, size int) evaluation {
	batches := set.Batches(size, data.Kept)
	if set.Len()%size == 0 {
		return testBy(m.stepOn(m.test, set), batches)
	}
	return testBy(m.stepOn(m.test, set), loop.From(func(position int64) iter.Seq2[data.Batch, error] {
		padded := changed(batches.From(position), func(b data.Batch) (data.Batch, error) { return data.Pad(b, size) })
		if m.takesNoPadding(context.Background(), padded) {
			return batches.From(position)
		}
		return padded
	}))
}

func (m *Model) takesNoPadding(ctx context.Context, batches iter.Seq2[data.Batch, error]) bool {
	batch, err := data.Peek(batches)
	if err == nil {
		err = m.test.Prepare(ctx, m.state, batch)
	}
	return errors.Is(err, managed.ErrPadded)
}

func changed(batches iter.Seq2[data.Batch, error], f func(data.Batch) (data.Batch, error)) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		for b, err := range batches {
			if err == nil {
				b, err = f(b)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

func counting(set *data.Set) int { return data.Batch{Fields: set.Fields()}.Samples() }

func (m *Model) noteEvaluated(found map[string]float64, at int64) {
	finite := maps.Clone(found)
	maps.DeleteFunc(finite, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	if at >= m.seen.evaluated.at { // a later Evaluate may have ended earlier
		m.seen.evaluated = figures{at: at, found: finite}
	}
}
