package data

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/listed"
)

// Map applies the changes in order, each to all examples as one batch: [Select], [Drop], [Rename], [OnField], Apply
// of a tables.Preparation, or your own. They must return new arrays: writing into the set's is an error.
func (s *Set) Map(changes ...func(Batch) (Batch, error)) (*Set, error) {
	if s.Mapped() {
		return nil, fmt.Errorf("data: map a set: %w", errMapped)
	}
	b, before := Batch{Fields: s.Fields(), Size: s.len}, s.sampled()
	for i, change := range changes {
		if change == nil {
			return nil, fmt.Errorf("data: map a set: change %d of %d is nil", i+1, len(changes))
		}
		var err error
		if b, err = change(b); err == nil {
			b, err = b.OnHost()
		}
		if err == nil && s.sampled() != before {
			err = fmt.Errorf("data: map a set: change %d of %d has written into the arrays of the set, which is spoiled: it must return new arrays", i+1, len(changes))
		}
		if err != nil {
			return nil, err
		}
	}
	return New(b.Fields...)
}

var errMapped = errors.New("the set has functions of MapBatches, whose outputs it does not know: call this before MapBatches")

// Select returns a change for [Map] and [Set.Map] that keeps the named fields, in this order.
func Select(names ...string) func(Batch) (Batch, error) {
	names = slices.Clone(names)
	return changed("select", names, func(fields []Field) ([]Field, error) {
		chosen := make([]Field, len(names))
		for i, name := range names {
			var err error
			if chosen[i], err = find(fields, name, "the batch"); err != nil {
				return nil, err
			}
		}
		return chosen, nil
	})
}

// Drop returns a change like [Select] that removes the named fields.
func Drop(names ...string) func(Batch) (Batch, error) {
	names = slices.Clone(names)
	return changed("drop", names, func(fields []Field) ([]Field, error) {
		for _, name := range names {
			if _, err := find(fields, name, "the batch"); err != nil {
				return nil, err
			}
		}
		return slices.DeleteFunc(fields, func(f Field) bool { return slices.Contains(names, f.Name) }), nil
	})
}

// Rename returns a change like [Select] that renames a field.
func Rename(from, to string) func(Batch) (Batch, error) {
	return changed("rename", []string{from, to}, func(fields []Field) ([]Field, error) {
		if _, err := find(fields, from, "the batch"); err != nil {
			return nil, err
		}
		if fieldIn(fields, to) != nil || to == "" {
			return nil, fmt.Errorf("to %q: expected a name that is not empty and that no other field has", to)
		}
		fieldIn(fields, from).Name = to
		return fields, nil
	})
}

// OnField returns a change like [Select] that replaces one field by f of it, as f = tables.Scaling.Apply, without
// its Classes.
func OnField(name string, f func(Array) (Array, error)) func(Batch) (Batch, error) {
	none := refuse("on field", false, f == nil)
	return func(b Batch) (Batch, error) {
		if none != nil {
			return Batch{}, none
		}
		b, err := b.OnHost()
		if err != nil {
			return Batch{}, err
		}
		b = b.alone()
		b.Fields = slices.Clone(b.Fields)
		field, err := find(b.Fields, name, "data: the batch")
		if err != nil {
			return Batch{}, err
		}
		a, err := f(field.Array)
		if err != nil {
			return Batch{}, err
		}
		*fieldIn(b.Fields, name) = Field{Name: name, Array: a}
		return b, nil
	}
}

func changed(what string, names []string, f func([]Field) ([]Field, error)) func(Batch) (Batch, error) {
	err := listed.Distinct(len(names), fmt.Sprintf("of %d", len(names)), func(i int) string { return names[i] })
	if err == nil && len(names) == 0 {
		err = errors.New("no field is named")
	}
	return func(b Batch) (Batch, error) {
		if err != nil {
			return Batch{}, fmt.Errorf("data: %s: %w", what, err)
		}
		b, err := b.OnHost()
		if err != nil {
			return Batch{}, err
		}
		b = b.alone()
		if b.Fields, err = f(slices.Clone(b.Fields)); err == nil && len(b.Fields) == 0 {
			err = errors.New("no field is left")
		}
		if err != nil {
			return Batch{}, fmt.Errorf("data: %s %q: %w", what, names, err)
		}
		return b, nil
	}
}
