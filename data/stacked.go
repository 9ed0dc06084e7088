package data

import "slices"

// stack is memory in which batches lie one behind the other, for each field: the set's own for batches in order, and
// what a number of them were gathered into if they are shuffled. Such a batch says in which, and from what row on.
type stack struct{ fields []any }

// Stacked appends to list, for each field, a view of the batches' elements and of what lies behind them, as many as k
// batches have. It gives false unless the batches say that they lie one behind the other in one memory, and it has room
// for k of them: see [Set.Batches]. What a batch says holds while its fields are those that it was dealt out with.
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
		kind, width := elementsOf(flat), n/rows
		if (from.row+k*rows)*width > kind.len(flat) {
			return list, false
		}
		for i := range batches {
			b, at := &batches[i], from.row+i*rows
			if b.row != at || len(b.Fields) <= f || !kind.is(flat, at*width, (at+rows)*width, b.Fields[f].Array.Flat) {
				return list, false
			}
		}
		list = append(list, kind.slice(flat, from.row*width, (from.row+k*rows)*width))
	}
	return list, true
}

// with is the batch with another field in a place, in Fields of its own.
func (b Batch) with(k int, f Field) Batch {
	b = b.alone()
	b.Fields = slices.Clone(b.Fields)
	b.Fields[k] = f
	return b
}

// copied is the batch with elements of its own.
func (b Batch) copied() Batch {
	b = b.alone()
	b.Fields = slices.Clone(b.Fields)
	for i, f := range b.Fields {
		b.Fields[i].Array.Flat = elementsOf(f.Array.Flat).concat([]any{f.Array.Flat})
	}
	return b
}

// alone is a batch for other elements than those that lie in the stack.
func (b Batch) alone() Batch {
	b.stack, b.row = nil, 0
	return b
}
