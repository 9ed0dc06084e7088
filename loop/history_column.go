package loop

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/records"
)

// column is all values of one entry, by row. Rows that lack it take no place.
type column struct {
	place
	cells list[cell]
	// late has the values that were not read yet, nil where cells has the number. It stays empty as long as all were
	// numbers: then the column holds no pointers, and a long history costs the garbage collector nothing.
	late list[Value]
}

type cell struct {
	row    int64 // number of the row
	number float64
}

// add puts a value at the newest row.
func (c *column) add(row int64, v Value) {
	c.pop(row) // an entry that comes twice in one row: the last stays
	var number Number
	p, known := v.(*Number)
	if known {
		number = *p // in the array of its logs, which is not to be kept for it
	} else {
		number, known = v.(Number)
	}
	if known {
		v = nil
	} else {
		for c.late.n < c.cells.n {
			c.late.push(nil)
		}
	}
	c.cells.push(cell{row, float64(number)})
	if !known || c.late.n > 0 {
		c.late.push(v)
	}
}

// shift drops the value of the oldest row, if it has one.
func (c *column) shift(row int64) {
	if c.cells.n == 0 || c.cells.at(0).row != row {
		return
	}
	c.cells.shift()
	if c.late.n > 0 {
		c.late.shift()
	}
}

// pop drops the value of the newest row, if it has one.
func (c *column) pop(row int64) {
	if c.cells.n == 0 || c.cells.at(c.cells.n-1).row != row {
		return
	}
	c.cells.pop()
	if c.late.n > 0 {
		c.late.pop()
	}
}

// keep drops the values of the rows for which stays is false.
func (c *column) keep(stays func(row int64) bool) {
	c.late.keep(func(i int) bool { return stays(c.cells.at(i).row) })
	c.cells.keep(func(i int) bool { return stays(c.cells.at(i).row) })
}

// lateAt is the i-th value if it was not read yet.
func (c *column) lateAt(i int) Value {
	if c.late.n == 0 {
		return nil
	}
	return *c.late.at(i)
}

// number reads the i-th value.
func (c *column) number(i int) (float64, error) {
	late := c.lateAt(i)
	if late == nil {
		return c.cells.at(i).number, nil
	}
	v, err := late.Float()
	if err != nil {
		return 0, err
	}
	if _, ok := late.(Payload); !ok {
		c.cells.at(i).number, *c.late.at(i) = v, nil
	}
	return v, nil
}

// value is the i-th value, unread.
func (c *column) value(i int) Value {
	switch late := c.lateAt(i).(type) {
	case nil:
		return Number(c.cells.at(i).number)
	case Payload:
		return late
	}
	return stored{c, c.cells.at(i).row}
}

var errDropped = errors.New("the history dropped it before it was read")

// stored is a value in a history: it is read there, so that the history has it then.
type stored struct {
	column *column
	row    int64
}

func (s stored) Float() (float64, error) {
	i := s.column.cells.search(func(c *cell) bool { return c.row >= s.row })
	if i == s.column.cells.n || s.column.cells.at(i).row != s.row {
		return 0, errDropped
	}
	return s.column.number(i)
}

// cursor goes along one name: a field of the elapsed time, which each row has, or a column.
type cursor struct {
	field  *records.Field
	column *column
	at     int
}

// seek goes to a row, which must not lie before the one it is at, and tells whether the name is there.
func (c *cursor) seek(row int64) bool {
	if c.field != nil {
		return true
	}
	cells := &c.column.cells
	for c.at < cells.n && cells.at(c.at).row < row {
		c.at++
	}
	return c.at < cells.n && cells.at(c.at).row == row
}

// read reads the value at r, to which seek went.
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
