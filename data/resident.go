package data

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
)

// Resident is a set in device memory; see [OnDevice].
type Resident struct {
	*Set
	rows func() *Set
}

// Rows names the field of the examples' int32 positions in a batch of a [Resident] set.
const Rows = "rows"

// OnDevice marks a set to be kept in device memory, which must also hold the model. A state copies the set at the
// first batch. On the CPU small steps are slower than with [Set.Batches].
//
// Order and fields are those of [Set.Batches]. Host functions, like [Map] and images.Augment, see only [Rows] and
// [Mask].
func OnDevice(s *Set) *Resident {
	return &Resident{s, sync.OnceValue(func() *Set {
		places := make([]int32, s.len)
		for i := range places {
			places[i] = int32(i)
		}
		rows := &Set{fields: []Field{Named(Rows, places, s.len)}, len: s.len}
		if mask, ok := (Batch{Fields: s.fields}).mask(); ok {
			rows.fields = append(rows.fields, Named(Mask, mask, s.len))
		}
		return rows
	})}
}

// Batches is as [Set.Batches].
func (r *Resident) Batches(size int, opts ...Option) Batches {
	opts = slices.Clone(opts)
	return Batches{from: func(position, epochs int64, whole bool) iter.Seq2[Batch, error] {
		return r.batches(size, opts, position, epochs, whole)
	}}
}

func (r *Resident) batches(size int, opts []Option, position, epochs int64, whole bool) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		if err := r.made("the set"); err != nil {
			yield(Batch{}, fmt.Errorf("data: on device: %w", err))
			return
		}
		if r.len > math.MaxInt32 {
			yield(Batch{}, fmt.Errorf("data: on device: the set has %d examples, expected at most %d", r.len, math.MaxInt32))
			return
		}
		if r.Mapped() {
			yield(Batch{}, errors.New("data: on device: the set has functions of MapBatches, which change its batches on the host: make the batches first, by data.Collect, or leave the set on the host"))
			return
		}
		if r.has(Rows) {
			yield(Batch{}, fmt.Errorf("data: on device: the set has a field %q: give it another name", Rows))
			return
		}
		var of *Deal
		for _, f := range r.fields {
			if err := f.Array.checkNumbers(); err != nil {
				yield(Batch{}, fmt.Errorf("data: on device: field %q: %w", f.Name, err))
				return
			}
		}
		for b, err := range r.rows().Batches(size, opts...).from(position, epochs, whole) {
			if of == nil && b.Deal != nil {
				of = &Deal{}
				*of = *b.Deal
				own := r.Set.dealOf(dealing{}, size)
				of.Fields, of.Content = own.Fields, own.Content
			}
			b.Resident, b.Deal = r, of
			if !yield(b, err) {
				return
			}
		}
	}
}

func (r *Resident) made(what string) error {
	if r.rows == nil {
		return fmt.Errorf("%s is a Resident that was not made by OnDevice: use the one that data.OnDevice returns for the set, or leave it nil", what)
	}
	return nil
}

// Places returns the examples' positions in the batch's [Resident] set, or nil. Positions out of range are an error: a
// device would clamp them.
func (b Batch) Places() ([]int32, error) {
	if b.Resident == nil {
		return nil, nil
	}
	if err := b.Resident.made("Batch.Resident"); err != nil {
		return nil, err
	}
	f := fieldIn(b.Fields, Rows)
	if f == nil {
		return nil, nil
	}
	places, ok := f.Array.Flat.([]int32)
	if !ok {
		return nil, fmt.Errorf("field %q is %T, expected []int32", Rows, f.Array.Flat)
	}
	for i, p := range places {
		if p < 0 || int(p) >= b.Resident.len {
			return nil, fmt.Errorf("field %q: example %d is %d of a set of %d: expected 0 to %d", Rows, i, p, b.Resident.len, b.Resident.len-1)
		}
	}
	return places, nil
}

func (s *Set) has(field string) bool { return fieldIn(s.fields, field) != nil }

// OnHost gathers the fields of a [Resident] set's batch in host memory.
func (b Batch) OnHost() (Batch, error) { return b.gathered("") }

// gathered gathers one field alone if it is named; the others are then the set's.
func (b Batch) gathered(only string) (Batch, error) {
	if b.Resident == nil {
		return b, nil
	}
	places, err := b.Places()
	if err != nil {
		return Batch{}, fmt.Errorf("data: gather a batch: %w", err)
	}
	all := b.alone()
	all.Resident, all.Fields = nil, nil
	var padding *Array
	for _, f := range b.Fields {
		switch f.Name {
		case Rows:
			rows := make([]int, len(places))
			for i, p := range places {
				rows[i] = int(p)
			}
			for _, f := range b.Resident.fields {
				if only == "" || only == f.Name {
					f.Array = f.Array.gather(rows, dimsOf(f.Array, len(rows)))
				}
				all.Fields = append(all.Fields, f)
			}
		case Mask:
			padding = &f.Array
		default:
			return Batch{}, fmt.Errorf("data: gather a batch: the set has no field %q", f.Name)
		}
	}
	if padding == nil || only != "" && only != Mask {
		return all, nil
	}
	f := fieldIn(all.Fields, Mask)
	if f == nil {
		all.Fields = append(all.Fields, Field{Name: Mask, Array: *padding})
		return all, nil
	}
	mask, _ := padding.Flat.([]bool)
	both, ok := f.Array.Flat.([]bool)
	if !ok || len(both) != len(mask) {
		return Batch{}, errors.New("data: gather a batch: its mask and the set's differ in form")
	}
	for i := range both {
		both[i] = both[i] && mask[i]
	}
	return all, nil
}
