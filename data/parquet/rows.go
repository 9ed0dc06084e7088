package parquet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/lazo-ml/lazo/data"
)

type field struct {
	Field
	cursors []*cursor
	sink    sink
	fill    *value
	list    bool // all rows have as many values as the first
	width   int  // values per row; 0 before a list's first row
	dims    []int
}

type rows struct {
	unpacker
	footer  *footer
	fields  []field
	cursors []*cursor
	wanted  map[int]int // cursors by leaf number
	left    int64
	row     int64

	// Of block: rows to take singly first, the columns' next states, indices in a dictionary.
	oneByOne int64
	next     []taken
	places   [blockRows]uint32
}

func openRows(file io.ReaderAt, size int64, format Format) (*rows, error) {
	if format.Limit < 0 {
		return nil, fmt.Errorf("the limit is %d bytes, expected at least 1, or 0 for twice the file and 56 MB", format.Limit)
	}
	most := 2 * size
	if format.Texts {
		most = 16 * size
	}
	format.Limit = cmp.Or(format.Limit, most+56<<20)
	if format.Texts && len(format.Fields) > 0 {
		return nil, errors.New("the format has both Texts and Fields, expected one of them: a field of texts has the DType \"string\"")
	}
	if len(format.Fields) == 0 {
		format.Fields = []Field{{Name: "x"}}
	}
	r := &rows{unpacker: unpacker{file: file, mem: &memory{format.Limit, format.Limit}}, wanted: map[int]int{}}
	var err error
	if r.footer, err = readFooter(file, size, r.mem); err != nil {
		return nil, err
	}
	if format.Texts {
		format.Fields = nil
		for _, l := range r.footer.leaves {
			if l.pandas {
				continue
			}
			if l.repeats > 0 {
				return nil, fmt.Errorf("column %q holds lists, which are not texts: name the other columns in Format.Fields, with the DType \"string\"", l.name)
			}
			format.Fields = append(format.Fields, Field{Name: l.name, Columns: []string{l.name}, DType: "string"})
		}
	}
	chosen, err := choose(r.footer.leaves, format.Fields)
	if err != nil {
		return nil, err
	}
	used := make(map[*leaf]bool)
	for k, f := range format.Fields {
		one, err := r.field(f, chosen[k])
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		for _, l := range chosen[k] {
			if used[l] {
				return nil, fmt.Errorf("field %q: column %q is named twice", f.Name, l.name)
			}
			used[l] = true
			c := &cursor{unpacker: &r.unpacker, leaf: l}
			r.wanted[l.index] = len(r.cursors)
			r.cursors = append(r.cursors, c)
			one.cursors = append(one.cursors, c)
		}
		r.fields = append(r.fields, one)
	}
	return r, nil
}

func (r *rows) field(f Field, leaves []*leaf) (field, error) {
	one := field{Field: f, width: len(leaves)}
	var err error
	if one.sink, err = sinkOf(f, r.mem); err != nil {
		return one, err
	}
	if one.fill, err = fillOf(f); err == nil && one.fill != nil {
		probe, _ := sinkOf(f, &memory{1 << 10, 1 << 10})
		if err = probe.add(one.fill); err != nil {
			err = fmt.Errorf("fill: %w", err)
		}
	}
	if err != nil {
		return one, err
	}
	texts, _ := one.sink.(*textual)
	for i, l := range leaves {
		isText := (l.typ == typeBytes || l.typ == typeFixed) && texts == nil
		truths := texts != nil && l.typ == typeBool
		if texts != nil && i == 0 {
			texts.truths = truths
		}
		switch {
		case texts != nil && texts.truths != truths:
			return one, fmt.Errorf("columns %q and %q, of which one holds truth values: give each a field of its own", leaves[0].name, l.name)
		case l.err != nil:
			return one, fmt.Errorf("column %q: %w", l.name, l.err)
		case isText && f.Classes == nil && f.DType != "uint8":
			return one, fmt.Errorf("column %q: %w", l.name, errText)
		case isText && f.Classes == nil && l.repeats > 0:
			return one, fmt.Errorf("column %q: a list of texts needs Classes", l.name)
		case isText && f.Classes == nil && f.Fill != "":
			return one, fmt.Errorf("column %q: bytes have no Fill", l.name)
		}
		if l.repeats > 0 || isText && f.Classes == nil {
			one.list, one.width = true, 0
		}
	}
	if one.list && len(leaves) > 1 {
		return one, fmt.Errorf("%d columns, of which one holds lists or bytes; give it a field of its own", len(leaves))
	}
	if len(f.Dims) > 0 && !one.list {
		return one, fmt.Errorf("dims %v for a column that holds no lists or bytes", f.Dims)
	}
	if !one.list && (len(f.Columns) != 1) {
		one.dims = []int{len(leaves)}
	}
	return one, nil
}

func (r *rows) more() (bool, error) {
	for r.left == 0 {
		if r.row > 0 || r.footer.count == 0 {
			if err := r.ended(); err != nil {
				return false, err
			}
		}
		if r.footer.count == 0 {
			return false, nil
		}
		g, err := r.footer.next(r.wanted)
		if err != nil {
			return false, damaged(r.footer.end, "%w", err)
		}
		r.left = g.rows
		for k, c := range r.cursors {
			if err := c.open(g.chunks[k], r.footer.end); err != nil {
				return false, damaged(r.footer.end, "column %q: %w", c.leaf.name, err)
			}
		}
	}
	return true, nil
}

func (r *rows) ended() error {
	for _, c := range r.cursors {
		more, err := c.peek()
		if err != nil {
			return err
		}
		if more {
			return damaged(c.pageFrom, "column %q has more values than the row group has rows", c.leaf.name)
		}
	}
	return nil
}

func (r *rows) short(c *cursor, err error) error {
	if err != nil {
		return err
	}
	return damaged(c.pageFrom, "column %q has fewer values than the row group has rows (%d more): %w", c.leaf.name, r.left, io.ErrUnexpectedEOF)
}

func (r *rows) take() error {
	for k := range r.fields {
		f := &r.fields[k]
		for _, c := range f.cursors {
			more, err := c.peek()
			if err != nil || !more {
				return r.short(c, err)
			}
			if f.list {
				err = r.list(f, c)
			} else {
				err = r.one(f, c, c.d == c.leaf.maxDef)
			}
			if err != nil {
				return err
			}
		}
	}
	r.row++
	r.left--
	return nil
}

func (r *rows) one(f *field, c *cursor, there bool) error {
	c.loaded = false
	v := &c.value
	if there && v.kind == float && f.fill != nil && (math.IsNaN(v.float) || math.IsInf(v.float, 0)) {
		there = false
	}
	if !there {
		if v = f.fill; v == nil && f.DType == "string" {
			v = &value{kind: text}
		}
		if v == nil {
			return r.fail(c, errors.New("the value is null; set Field.Fill to its replacement, or leave the column out"))
		}
	}
	if err := f.sink.add(v); err != nil {
		return r.fail(c, err)
	}
	return nil
}

func (r *rows) fail(c *cursor, err error) error {
	return &data.RowError{Row: int(r.row) + 1, Column: c.leaf.name, Err: err}
}

func (r *rows) list(f *field, c *cursor) error {
	before := f.sink.len()
	if c.r != 0 {
		return damaged(c.pageFrom, "column %q: a value comes before the start of its row", c.leaf.name)
	}
	for {
		if c.leaf.repeats == 0 || c.d >= c.leaf.listDef {
			if err := r.one(f, c, c.d == c.leaf.maxDef); err != nil {
				return err
			}
		}
		c.loaded = false
		if c.leaf.repeats == 0 {
			break
		}
		if more, err := c.peek(); err != nil {
			return err
		} else if !more || c.r == 0 {
			break
		}
		if f.width > 0 && f.sink.len()-before > f.width {
			break
		}
	}
	got := f.sink.len() - before
	if f.width > 0 {
		if got != f.width {
			return r.fail(c, fmt.Errorf("it has %d values or bytes, the first row %d; expected the same number in each row", got, f.width))
		}
		return nil
	}
	if got == 0 {
		return r.fail(c, errors.New("the first row has no values; expected the same number in each row, and at least 1"))
	}
	f.width, f.dims = got, []int{got}
	if len(f.Dims) > 0 {
		if product(f.Dims) != got {
			return r.fail(c, fmt.Errorf("it has %d values or bytes, but Dims are %v", got, f.Dims))
		}
		f.dims = f.Dims
	}
	return nil
}

func product(dims []int) int {
	all := 1
	for _, d := range dims {
		if d < 1 || all > math.MaxInt32/d {
			return -1
		}
		all *= d
	}
	return all
}
