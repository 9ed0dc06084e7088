package loop

import (
	"fmt"

	"github.com/lazo-ml/lazo/internal/columns"
	"github.com/lazo-ml/lazo/internal/records"
)

type column struct {
	entryKey
	columns.Column
}

type cursor struct {
	field  *records.Field
	column *column
	at     int
}

func (c *cursor) seek(row int64) bool {
	if c.field != nil {
		return true
	}
	for c.at < c.column.Len() && c.column.Row(c.at) < row {
		c.at++
	}
	return c.at < c.column.Len() && c.column.Row(c.at) == row
}

func (c *cursor) read(r row) (float64, error) {
	if c.field != nil {
		return c.field.Number(r.times()), nil
	}
	v, err := c.column.Number(c.at)
	if err != nil {
		return 0, fmt.Errorf("loop: history: step %d: %s.%s: %w", r.elapsed.Steps, c.column.collection, c.column.name, err)
	}
	return v, nil
}
