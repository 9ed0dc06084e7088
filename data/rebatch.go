package data

import (
	"fmt"
	"iter"
	"slices"

	"github.com/lazo-ml/lazo/internal/arrays"
)

// Remainder decides about examples that fill no batch or do not divide evenly over shards.
type Remainder int

const (
	// Dropped discards them.
	Dropped Remainder = iota
	// Kept keeps them: sizes differ.
	Kept
	// Padded adds copies, for which the field [Mask] is false: sizes are equal.
	Padded
)

func (r Remainder) String() string {
	if r < Dropped || r > Padded {
		return fmt.Sprintf("Remainder(%d)", int(r))
	}
	return [...]string{"dropped", "kept", "padded"}[r]
}

func (r Remainder) check() error {
	if r < Dropped || r > Padded {
		return fmt.Errorf("the remainder's policy is %v, expected data.Dropped, data.Kept or data.Padded", r)
	}
	return nil
}

// Rebatch regroups batches of any sizes into batches of size examples. At each epoch's end the rest is dropped, kept,
// or padded; then all batches have the [Mask]. Batches that differ in fields, dtypes or dims are an error that ends the
// sequence.
func Rebatch(source iter.Seq2[Batch, error], size int, rest Remainder) iter.Seq2[Batch, error] {
	if err := rest.check(); err != nil {
		return failed[Batch](fmt.Errorf("data: rebatch: %w", err))
	}
	if size < 1 {
		return failed[Batch](fmt.Errorf("data: rebatch to %d examples: expected at least 1", size))
	}
	if source == nil {
		return failed[Batch](fmt.Errorf("data: rebatch: %w", errNoSource))
	}
	return func(yield func(Batch, error) bool) {
		w := waiting{size: size, rest: rest}
		for b, err := range source {
			if err != nil {
				if !yield(Batch{}, err) {
					return
				}
				continue
			}
			if !w.add(b, yield) {
				return
			}
		}
		w.end(yield)
	}
}

type waiting struct {
	size         int
	rest         Remainder
	parts        []Batch
	have         int
	like         Batch
	at           int
	deal, source *Deal
}

func (w *waiting) add(b Batch, yield func(Batch, error) bool) bool {
	rows, err := w.check(b)
	if err != nil {
		yield(Batch{}, fmt.Errorf("data: rebatch: %w", err))
		return false
	}
	if b.Epoch != w.like.Epoch {
		if !w.end(yield) {
			return false
		}
		w.at = 0
	}
	w.like = b
	for from := 0; from < rows; {
		n := min(rows-from, w.size-w.have)
		w.parts = append(w.parts, b.slice(from, from+n, rows))
		from, w.have = from+n, w.have+n
		if w.have == w.size && !w.flush(yield) {
			return false
		}
	}
	return true
}

func (w *waiting) check(b Batch) (rows int, err error) {
	if rows, err = b.divisible(); err != nil {
		return 0, err
	}
	if b.Partial() {
		return 0, fmt.Errorf("the batch is part %d of %d of a larger one: rebatch first, then share it by data.ShareOf", b.Part.Rank, b.Part.Of)
	}
	if _, masked := b.mask(); b.own() < rows && !masked {
		return 0, fmt.Errorf("the batch has %d rows, of which Size counts %d as examples, and no field %q that marks them", rows, b.Size, Mask)
	}
	if w.like.Fields == nil {
		w.like.Epoch = b.Epoch
		return rows, nil
	}
	return rows, sameFields(w.like, b)
}

func (w *waiting) end(yield func(Batch, error) bool) bool {
	if w.have == 0 || w.rest == Dropped {
		w.parts, w.have = nil, 0
		return true
	}
	return w.flush(yield)
}

func (w *waiting) flush(yield func(Batch, error) bool) bool {
	b := joined(w.parts)
	b.At, b.Deal, b.end = w.at, w.dealOf(b.Deal), epochUnknown
	w.at += w.have
	w.parts, w.have = nil, 0
	var err error
	if w.rest == Padded {
		b, err = Pad(b, w.size)
	}
	return yield(b, err) && err == nil
}

func (w *waiting) dealOf(source *Deal) *Deal {
	if source != w.source {
		w.source, w.deal = source, nil
		if source != nil {
			of := *source
			of.Size, of.Remainder = w.size, w.rest != Dropped
			w.deal = &of
		}
	}
	return w.deal
}

func joined(parts []Batch) Batch {
	if len(parts) == 1 {
		return parts[0]
	}
	all := parts[0]
	all.Fields, all.Size, all.left = slices.Clone(all.Fields), 0, 0
	for _, p := range parts {
		all.Size += p.Samples()
		all.left += p.left
	}
	flats := make([]any, len(parts))
	for k, f := range all.Fields {
		rows := 0
		for i, p := range parts {
			flats[i] = p.Fields[k].Array.Flat
			rows += p.Fields[k].Array.Len()
		}
		all.Fields[k].Array = Array{arrays.Of(f.Array.Flat).Concat(flats), dimsOf(f.Array, rows)}
	}
	return all
}

func sameFields(before, b Batch) error {
	if len(b.Fields) != len(before.Fields) {
		return fmt.Errorf("a batch has the fields %q, those before it have %q", b.names(), before.names())
	}
	for k, f := range b.Fields {
		was := before.Fields[k]
		if f.Name != was.Name {
			return fmt.Errorf("a batch has the fields %q, those before it have %q", b.names(), before.names())
		}
		if f.Array.DType() != was.Array.DType() || len(f.Array.Dims) != len(was.Array.Dims) ||
			len(f.Array.Dims) > 0 && !slices.Equal(f.Array.Dims[1:], was.Array.Dims[1:]) {
			return fmt.Errorf("field %q of a batch is %s %v, of those before it %s %v; only the first axis may differ",
				f.Name, f.Array.DType(), f.Array.Dims, was.Array.DType(), was.Array.Dims)
		}
	}
	return nil
}

func (b Batch) names() []string {
	names := make([]string, len(b.Fields))
	for i, f := range b.Fields {
		names[i] = f.Name
	}
	return names
}

// Checked yields an error for a batch that fails [Batch.Check] or differs from the first in fields, dtypes or later
// dims.
func Checked(source iter.Seq2[Batch, error]) iter.Seq2[Batch, error] {
	if source == nil {
		return failed[Batch](fmt.Errorf("data: checked: %w", errNoSource))
	}
	return func(yield func(Batch, error) bool) {
		var first *Batch
		n := 0
		for b, err := range source {
			n++
			if err == nil {
				if err = b.valid(); err == nil && first == nil {
					first = &b
				} else if err == nil {
					err = sameFields(*first, b)
				}
				if err != nil {
					b, err = Batch{}, fmt.Errorf("data: batch %d: %w", n, err)
				}
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
