package loop

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/pieces"
	"github.com/lazo-ml/lazo/internal/records"
)

// column has all values of one entry, by row. Rows that lack it take no memory.
type column struct {
	entryKey
	cells pieces.List[cell]
	// unread has the values that were not read yet, nil where cells has the number. It stays empty as long as all are
	// numbers: the column then has no pointers, and a long history costs the garbage collector nothing.
	unread pieces.List[Value]
}

type cell struct {
	row    int64 // number of the row
	number float64
}

// add puts a value at the newest row.
func (c *column) add(row int64, v Value) {
	c.pop(row) // if an entry comes twice in one row, the last one stays
	var n number
	p, known := v.(*number)
	if known {
		n = *p // it points into an array of its logs, which must not be kept alive
	} else {
		n, known = v.(number)
	}
	if known {
		v = nil
	} else {
		for c.unread.Len() < c.cells.Len() {
			c.unread.Push(nil)
		}
	}
	c.cells.Push(cell{row, float64(n)})
	if !known || c.unread.Len() > 0 {
		c.unread.Push(v)
	}
}

// pop drops the value of the newest row, if it has one.
func (c *column) pop(row int64) {
	if c.cells.Len() == 0 || c.cells.At(c.cells.Len()-1).row != row {
		return
	}
	c.cells.Pop()
	if c.unread.Len() > 0 {
		c.unread.Pop()
	}
}

// keep drops the values of the rows for which stays is false.
func (c *column) keep(stays func(row int64) bool) {
	c.unread.Keep(func(i int) bool { return stays(c.cells.At(i).row) })
	c.cells.Keep(func(i int) bool { return stays(c.cells.At(i).row) })
}

// unreadAt is the i-th value if it was not read yet.
func (c *column) unreadAt(i int) Value {
	if c.unread.Len() == 0 {
		return nil
	}
	return *c.unread.At(i)
}

// number reads the i-th value.
func (c *column) number(i int) (float64, error) {
	late := c.unreadAt(i)
	if late == nil {
		return c.cells.At(i).number, nil
	}
	v, err := late.Float()
	if err != nil {
		return 0, err
	}
	if _, ok := late.(abilities.Payload); !ok {
		c.cells.At(i).number, *c.unread.At(i) = v, nil
	}
	return v, nil
}

// value is the i-th value, unread.
func (c *column) value(i int) Value {
	switch late := c.unreadAt(i).(type) {
	case nil:
		return number(c.cells.At(i).number)
	case abilities.Payload:
		return late
	}
	return stored{c, c.cells.At(i).row}
}

var errDropped = errors.New("the history dropped it before it was read")

// stored is an unread value in a history. Reading it stores the number there.
type stored struct {
	column *column
	row    int64
}

func (s stored) Float() (float64, error) {
	i := s.column.cells.Search(func(c *cell) bool { return c.row >= s.row })
	if i == s.column.cells.Len() || s.column.cells.At(i).row != s.row {
		return 0, errDropped
	}
	return s.column.number(i)
}

// cursor moves along the values of one name: a field of elapsed, which each row has, or a column.
type cursor struct {
	field  *records.Field
	column *column
	at     int
}

// seek moves to a row, which must not lie before the present one, and reports whether it has the name.
func (c *cursor) seek(row int64) bool {
	if c.field != nil {
		return true
	}
	cells := &c.column.cells
	for c.at < cells.Len() && cells.At(c.at).row < row {
		c.at++
	}
	return c.at < cells.Len() && cells.At(c.at).row == row
}

// read reads the value at r, to which seek moved.
func (c *cursor) read(r row) (float64, error) {
	if c.field != nil {
		return c.field.Number(r.times()), nil
	}
	v, err := c.column.number(c.at)
	if err != nil {
		return 0, fmt.Errorf("loop: history: step %d: %s.%s: %w", r.elapsed.Steps, c.column.collection, c.column.name, err)
	}
	return v, nil
}
