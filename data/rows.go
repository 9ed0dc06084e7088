package data

import "fmt"

// Rows is the length of the first axis, which all fields with axes share, with padding; 1 if none has any.
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

// Samples is the number of examples: Size, or if that is 0, those that the mask marks, else the rows. For a [Part] it
// is the whole batch's.
func (b Batch) Samples() int {
	if b.Partial() {
		return b.Part.Samples
	}
	return b.own()
}

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

// Slice returns a view of rows i to j-1. Its Size counts the examples without padding.
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

// Check returns an error if a step refuses the batch: field names must be unique, fields pass [Array.Check], a [Mask]
// has one value per row, and Resident comes from [OnDevice].
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
			return 0, fmt.Errorf("field %q is %s %v, expected a bool for each of %d rows: rename it if it is not a mask of padding", Mask, f.Array.DType(), f.Array.Dims, rows)
		}
	}
	return rows, nil
}

func (b Batch) slice(i, j, rows int) Batch {
	if i == 0 && j == rows {
		return b
	}
	part := b
	part.Fields, part.Size, part.At = make([]Field, len(b.Fields)), b.examples(i, j, rows), b.At+i
	part.row += i
	if j < rows {
		part.left = 0
	}
	for k, f := range b.Fields {
		part.Fields[k] = Field{f.Name, f.Array.slice(i, j, dimsOf(f.Array, j-i)), f.Classes}
	}
	return part
}

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

func (b Batch) mask() ([]bool, bool) {
	f := fieldIn(b.Fields, Mask)
	if f == nil {
		return nil, false
	}
	mask, ok := f.Array.Flat.([]bool)
	return mask, ok && len(f.Array.Dims) == 1 && len(mask) == f.Array.Dims[0]
}

func trues(mask []bool) (n int) {
	for _, counts := range mask {
		if counts {
			n++
		}
	}
	return n
}

type place struct {
	rows  int
	known bool
}

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

func moveOn(b any, by int) (behind int) {
	batch, ok := b.(*Batch)
	if !ok {
		return 0
	}
	batch.At += by
	rows, _ := batch.Rows()
	return batch.At + max(rows, 1)
}
