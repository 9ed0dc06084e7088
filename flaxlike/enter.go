package flaxlike

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/loop"
)

// enter makes a batch of the network's fields of a batch of a table. All batches and sets of callers come through it.
func (m *Model) enter(batch data.Batch, labels bool) (data.Batch, error) {
	p := m.set.preparation
	if p == nil {
		return batch, nil
	}
	prepare := p.Inputs
	if labels {
		prepare = p.Apply
	}
	b, err := prepare(batch)
	if err == nil {
		return b, nil
	}
	needed, targets := p.Columns()
	if labels {
		needed = append(needed, targets...)
	}
	host, _ := batch.OnHost()
	if slices.ContainsFunc(needed, func(name string) bool {
		return !slices.ContainsFunc(host.Fields, func(f data.Field) bool { return f.Name == name })
	}) {
		err = fmt.Errorf("%w\n  the model has a preparation: give it the table as it was read, with the columns %s", graphs.Inner(err), listed.Joined(needed))
	}
	return b, graphs.Input(err)
}

func (m *Model) enterSet(set *data.Set, labels bool) (*data.Set, error) {
	change := func(b data.Batch) (data.Batch, error) { return m.enter(b, labels) }
	switch {
	case set == nil || set.Len() == 0 || m.set.preparation == nil && !labels:
		return set, nil
	case m.set.preparation == nil:
		return m.renumbered(set)
	case set.Mapped():
		return set.MapBatches(change)
	}
	return set.Map(change)
}

func (m *Model) enterBatches(batches loop.Source[data.Batch], labels bool) loop.Source[data.Batch] {
	change := func(b data.Batch) (data.Batch, error) { return m.enter(b, labels) }
	plain, isPlain := batches.(loop.Data[data.Batch])
	named := labels && m.set.preparation == nil && m.classNames() != nil
	if named {
		change = m.renumberedBatch
	}
	switch {
	case m.set.preparation == nil && !named || batches == nil || isPlain && plain == nil:
		return batches
	case isPlain:
		return loop.Data[data.Batch](changed(iter.Seq2[data.Batch, error](plain), change))
	}
	return entering{batches, change}
}

func (m *Model) enterValidation(f Fit) (_ Fit, err error) {
	if f.Validation, err = m.enterSet(f.Validation, true); err != nil {
		return f, fmt.Errorf("the set Validation: %w", graphs.Inner(err))
	}
	f.Validations = maps.Clone(f.Validations)
	for _, name := range slices.Sorted(maps.Keys(f.Validations)) {
		if f.Validations[name], err = m.enterSet(f.Validations[name], true); err != nil {
			return f, fmt.Errorf("the set %q in Validations: %w", name, graphs.Inner(err))
		}
	}
	f.ValidationBatches = m.enterBatches(f.ValidationBatches, true)
	return f, nil
}

type entering struct {
	source loop.Source[data.Batch]
	change func(data.Batch) (data.Batch, error)
}

var _ abilities.Whole[data.Batch] = entering{}

func (e entering) From(position int64) iter.Seq2[data.Batch, error] {
	return e.changed(e.source.From(position))
}

func (e entering) WholeFrom(position int64) iter.Seq2[data.Batch, error] {
	return e.changed(abilities.WholeFrom(e.source)(position))
}

func (e entering) changed(batches iter.Seq2[data.Batch, error]) iter.Seq2[data.Batch, error] {
	if batches == nil {
		return nil
	}
	return changed(batches, e.change)
}
