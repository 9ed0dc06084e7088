// Package columns stores a history's values by name: numbers, and values that are read later.
package columns

import (
	"errors"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/pieces"
)

// Value is a number that may be read late, as from a device.
type Value = interface{ Float() (float64, error) }

type Number float64

func (n Number) Float() (float64, error) { return float64(n), nil }

// Column has the values of one name by ascending row. Rows without it take no memory.
type Column struct {
	cells pieces.List[cell]
	// unread has the values not read yet, nil for a known number. It is empty while all are numbers: the garbage
	// collector then finds no pointers.
	unread pieces.List[Value]
}

type cell struct {
	row    int64
	number float64
}

func (c *Column) Len() int { return c.cells.Len() }

func (c *Column) Row(i int) int64 { return c.cells.At(i).row }

func (c *Column) Search(row int64) int {
	return c.cells.Search(func(c *cell) bool { return c.row >= row })
}

// Add appends or replaces the newest row's value.
func (c *Column) Add(row int64, v Value) {
	c.Pop(row)
	var n Number
	p, known := v.(*Number)
	if known {
		n = *p // it points into an array, which must not be kept alive
	} else {
		n, known = v.(Number)
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

func (c *Column) Pop(row int64) {
	if c.cells.Len() == 0 || c.cells.At(c.cells.Len()-1).row != row {
		return
	}
	c.cells.Pop()
	if c.unread.Len() > 0 {
		c.unread.Pop()
	}
}

func (c *Column) Keep(stays func(row int64) bool) {
	c.unread.Keep(func(i int) bool { return stays(c.cells.At(i).row) })
	c.cells.Keep(func(i int) bool { return stays(c.cells.At(i).row) })
}

func (c *Column) unreadAt(i int) Value {
	if c.unread.Len() == 0 {
		return nil
	}
	return *c.unread.At(i)
}

// Number reads the i-th value and stores the number, except for an [abilities.Payload].
func (c *Column) Number(i int) (float64, error) {
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

// Value returns the i-th value unread, readable while the column has its row.
func (c *Column) Value(i int) Value {
	switch late := c.unreadAt(i).(type) {
	case nil:
		return Number(c.cells.At(i).number)
	case abilities.Payload:
		return late
	}
	return stored{c, c.cells.At(i).row}
}

var errDropped = errors.New("the history dropped it before it was read")

type stored struct {
	column *Column
	row    int64
}

func (s stored) Float() (float64, error) {
	i := s.column.Search(s.row)
	if i == s.column.Len() || s.column.Row(i) != s.row {
		return 0, errDropped
	}
	return s.column.Number(i)
}
