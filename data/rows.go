package data

import "fmt"

// Rows is the length of the first axis, on which all fields that have axes must agree; 1 where none has any. A batch
// has as many rows as examples, and more if it was padded: what is cut, or divided over devices, are rows; what is
// counted are examples.
func (b Batch) Rows() (int, error) {
	rows, of := 1, -1
	for i, f := range b.Fields {
		switch {
		case len(f.Array.Dims) == 0:
		case of < 0:
			rows, of = f.Array.Dims[0], i
		case f.Array.Dims[0] != rows:
			return 0, fmt.Errorf("data: field %q of the batch has %d rows, but field %q has %d", f.Name, f.Array.Dims[0], b.Fields[of].Name, rows)
		}
	}
	return rows, nil
}

// Samples is the number of examples, as package loop counts them: Size. Where that is 0 they are counted: those that
// the mask says count, else the rows of the first field that has axes; a batch without any is one example. Of a [Part]
// they are the whole batch's.
func (b Batch) Samples() int {
	if b.Partial() {
		return b.Part.Samples
	}
	return b.own()
}

// own is the number of the batch's own examples.
func (b Batch) own() int {
	if b.Size != 0 {
		return b.Size
	}
	if mask, ok := b.mask(); ok {
		return trues(mask)
	}
	for _, f := range b.Fields {
		if len(f.Array.Dims) > 0 {
			return f.Array.Dims[0]
		}
	}
	return 1
}

// Slice is rows i to j-1, as a view. Its Size counts the examples among them: those that the mask says count, else all
// but the rows that padding put behind the batch's examples.
func (b Batch) Slice(i, j int) (Batch, error) {
	rows, err := b.divisible()
	if err != nil {
		return Batch{}, fmt.Errorf("data: slice a batch: %w", err)
	}
	if i < 0 || j < i || j > rows {
		return Batch{}, fmt.Errorf("data: slice a batch of %d rows: from %d to %d", rows, i, j)
	}
	return b.slice(i, j, rows), nil
}

// Check returns an error unless a step can take the batch: each of its fields has a name of its own and passes
// [Array.Check], a [Mask] has a value for each row, and a Resident set is one of [OnDevice].
func (b Batch) Check() error {
	if err := b.valid(); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	return nil
}

func (b Batch) valid() error {
	if b.Resident != nil {
		if err := b.Resident.made("Batch.Resident"); err != nil {
			return err
		}
	}
	if err := distinctNames(b.Fields, "of the batch"); err != nil {
		return err
	}
	for _, f := range b.Fields {
		if err := f.Array.checkNumbers(); err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
	}
	mask, ok := b.mask()
	for _, f := range b.Fields {
		if ok && f.Name != Mask && len(f.Array.Dims) > 0 && f.Array.Dims[0] != len(mask) {
			return fmt.Errorf("field %q has %d values, expected a bool for each of the %d rows of field %q", Mask, len(mask), f.Array.Dims[0], f.Name)
		}
	}
	return nil
}

// divisible gives the rows of a batch that can be cut: valid arrays, of so many rows each, and at least as many as Size
// counts examples.
func (b Batch) divisible() (rows int, err error) {
	for i, f := range b.Fields {
		if err := f.Array.check(); err != nil {
			return 0, fmt.Errorf("field %q: %w", f.Name, err)
		}
		if i == 0 {
			rows = max(f.Array.Len(), b.Size)
		}
		if len(f.Array.Dims) == 0 || f.Array.Dims[0] != rows {
			return 0, fmt.Errorf("field %q has dims %v, expected %d examples on the first axis", f.Name, f.Array.Dims, rows)
		}
		if mask, ok := b.mask(); f.Name == Mask && (!ok || len(mask) != rows) {
			return 0, fmt.Errorf("field %q is %s %v, expected a bool for each of %d rows: rename it if it is no mask of padding", Mask, f.Array.DType(), f.Array.Dims, rows)
		}
	}
	return rows, nil
}

// slice does without checks; rows are those of the batch.
func (b Batch) slice(i, j, rows int) Batch {
	if i == 0 && j == rows {
		return b
	}
	part := b
	part.Fields, part.Size, part.At = make([]Field, len(b.Fields)), b.examples(i, j, rows), b.At+i
	part.row += i
	for k, f := range b.Fields {
		part.Fields[k] = Field{f.Name, f.Array.slice(i, j, dimsOf(f.Array, j-i))}
	}
	return part
}

// examples counts those among rows i to j-1: wherever rows are cut, the mask counts, and without one all but padding.
func (b Batch) examples(i, j, rows int) int {
	if mask, ok := b.mask(); ok {
		return trues(mask[i:j])
	}
	all := rows
	if b.Size != 0 {
		all = b.Size
	}
	return min(max(all-i, 0), j-i)
}

// mask is the one of the batch, if it has one of a bool for each row.
func (b Batch) mask() ([]bool, bool) {
	for i := range b.Fields {
		if f := &b.Fields[i]; f.Name == Mask {
			mask, ok := f.Array.Flat.([]bool)
			return mask, ok && len(f.Array.Dims) == 1 && len(mask) == f.Array.Dims[0]
		}
	}
	return nil, false
}

func trues(mask []bool) (n int) {
	for _, counts := range mask {
		if counts {
			n++
		}
	}
	return n
}

// place counts the rows of an iteration, for batches without a place, as those that a program makes itself: see
// [Batch].At.
type place struct {
	rows  int
	known bool // a batch came with a place
}

// number gives *b, if it is a batch without a place, the place after the batches before it, so that no two have the
// same.
func (p *place) number(b any) {
	batch, ok := b.(*Batch)
	if !ok || p.known {
		return
	}
	if p.known = batch.Deal != nil || batch.Epoch != 0 || batch.At != 0; !p.known {
		batch.At = p.rows
		p.rows = moveOn(b, 0)
	}
}

// moveOn moves the place of *b, if it is a batch, on by so many examples, and gives the place behind it.
func moveOn(b any, by int) (behind int) {
	batch, ok := b.(*Batch)
	if !ok {
		return 0
	}
	batch.At += by
	rows, _ := batch.Rows()
	return batch.At + max(rows, 1)
}
