package data

import (
	"slices"

	"github.com/lazo-ml/lazo/internal/arrays"
)

type stack struct {
	fields []any
	shared bool
}

// Stacked appends to list, for each field, a view of k consecutive batches that begin with the given ones. It returns
// false unless the batches are unchanged and contiguous, with room for k.
func Stacked(list []any, batches []Batch, k int) ([]any, bool) {
	if len(batches) == 0 || len(batches) > k || batches[0].stack == nil || len(batches[0].stack.fields) < len(batches[0].Fields) {
		return list, false
	}
	from := &batches[0]
	for f := range from.Fields {
		flat, rows, n := from.stack.fields[f], from.Fields[f].Array.Len(), from.Fields[f].Array.Size()
		if n == 0 || rows < 1 {
			return list, false
		}
		kind, width := arrays.Of(flat), n/rows
		if (from.row+k*rows)*width > kind.Len(flat) {
			return list, false
		}
		for i := range batches {
			b, at := &batches[i], from.row+i*rows
			if b.row != at || len(b.Fields) <= f || !kind.Is(flat, at*width, (at+rows)*width, b.Fields[f].Array.Flat) {
				return list, false
			}
		}
		list = append(list, kind.Slice(flat, from.row*width, (from.row+k*rows)*width))
	}
	return list, true
}

func (b Batch) copied() Batch {
	b = b.alone()
	b.Fields = slices.Clone(b.Fields)
	for i, f := range b.Fields {
		b.Fields[i].Array.Flat = arrays.Of(f.Array.Flat).Concat([]any{f.Array.Flat})
	}
	return b
}

func makeWritable(b any) {
	if batch, ok := b.(*Batch); ok && batch.stack != nil && batch.stack.shared {
		*batch = batch.copied()
	}
}

func (b Batch) alone() Batch {
	b.stack, b.row = nil, 0
	return b
}
