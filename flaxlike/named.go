package flaxlike

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
)

func (m *Model) classNames() map[string][]string {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	return m.namesLocked()
}

// namesLocked requires m.seen.mu.
func (m *Model) namesLocked() map[string][]string {
	if m.set.classes != nil {
		return m.set.classes
	}
	return m.seen.names
}

func (m *Model) nameClasses(set *data.Set) {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	names := map[string][]string{}
	for _, l := range m.set.losses {
		of := set.Classes(cmp.Or(l.Label, l.Output, "y"))
		width, built := m.seen.widths[cmp.Or(l.Output, preds)]
		k := l.kind()
		classes := k.binary || k.labels == classLabels || k.labels == exclusiveLabels
		if classes && len(of) > 1 && (!built || width == len(of) || width == 1 && len(of) == 2) {
			names[l.Output] = of
		}
	}
	if m.namesLocked() == nil && len(names) > 0 {
		m.seen.names = names
	}
}

// renumbered numbers labels with names as the model does.
func (m *Model) renumbered(set *data.Set) (*data.Set, error) {
	to, err := m.numbersOf(set.Classes)
	if err != nil || len(to) == 0 {
		return set, err
	}
	change := func(b data.Batch) (data.Batch, error) { return renumberedBy(to, b) }
	if set.Mapped() {
		return set.MapBatches(change)
	}
	return set.Map(change)
}

func (m *Model) renumberedBatch(b data.Batch) (data.Batch, error) {
	to, err := m.numbersOf(b.Classes)
	if err != nil || len(to) == 0 {
		return b, err
	}
	return renumberedBy(to, b)
}

func (m *Model) numbersOf(classes func(field string) []string) (to map[string][]int32, err error) {
	all := m.classNames()
	for _, l := range m.set.losses {
		field := cmp.Or(l.Label, l.Output, "y")
		names, own := classes(field), namesOf(all, l.Output, len(m.set.losses))
		if own == nil && l.Output == "" && len(all) == 1 {
			own = slices.Collect(maps.Values(all))[0]
		}
		if names == nil || own == nil || slices.Equal(names, own) {
			continue
		}
		numbers := make([]int32, len(names))
		for i, name := range names {
			at := slices.Index(own, name)
			if at < 0 {
				return nil, fmt.Errorf("field %q has the class %s, and the model has the classes %s: leave its examples out, or train a new model with all classes",
					field, listed.Quoted(name), listed.Some(own))
			}
			numbers[i] = int32(at)
		}
		if to == nil {
			to = map[string][]int32{}
		}
		to[field] = numbers
	}
	return to, nil
}

func renumberedBy(to map[string][]int32, b data.Batch) (_ data.Batch, err error) {
	for _, field := range slices.Sorted(maps.Keys(to)) {
		if b, err = data.OnField(field, func(a data.Array) (data.Array, error) { return renumber(field, a, to[field]) })(b); err != nil {
			return b, err
		}
	}
	return b, nil
}

func renumber(field string, a data.Array, to []int32) (data.Array, error) {
	from, err := arrays.Integers(a.Flat)
	if err != nil {
		return a, fmt.Errorf("field %q: its classes are in another order than the model's, and a function of MapBatches has made it %s: "+
			"order them before, as by images.Format.Classes", field, a.DType())
	}
	numbers := make([]int32, len(from))
	for i, n := range from {
		if n < 0 || n >= int64(len(to)) {
			return a, fmt.Errorf("field %q: the label %d of example %d is none of the %d classes of the set", field, n, i, len(to))
		}
		numbers[i] = to[n]
	}
	return data.Array{Flat: numbers, Dims: a.Dims}, nil
}

func namesOf(all map[string][]string, output string, outputs int) []string {
	if names := all[output]; names != nil || outputs > 1 && output != preds {
		return names
	}
	return all[""]
}
