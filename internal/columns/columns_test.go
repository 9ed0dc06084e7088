package columns

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// late counts how often it is read.
type late struct {
	v     float64
	err   error
	reads int
}

func (l *late) Float() (float64, error) { l.reads++; return l.v, l.err }

func TestColumn_readsAValueOnce(t *testing.T) {
	var c Column
	unread, broken := &late{v: 2}, &late{err: errors.New("the device is gone")}
	c.Add(1, Number(1))
	c.Add(3, unread)
	c.Add(4, broken)
	n := Number(5)
	c.Add(7, &n)
	require.Equal(t, 4, c.Len())
	for range 2 {
		for i, want := range map[int]float64{0: 1, 1: 2, 3: 5} {
			v, err := c.Number(i)
			require.NoError(t, err)
			require.Equal(t, want, v)
		}
		_, err := c.Number(2)
		require.ErrorIs(t, err, broken.err)
	}
	require.Equal(t, 1, unread.reads)
	require.Equal(t, 2, broken.reads, "an error is not stored")
}

func TestColumn_rows(t *testing.T) {
	var c Column
	for _, row := range []int64{2, 5, 9} {
		c.Add(row, Number(row))
	}
	c.Add(9, Number(10))
	require.Equal(t, 3, c.Len(), "the newest row's value was replaced")
	for row, at := range map[int64]int{0: 0, 2: 0, 3: 1, 9: 2, 10: 3} {
		require.Equal(t, at, c.Search(row), "row %d", row)
	}
	c.Pop(5)
	require.Equal(t, 3, c.Len(), "5 is not the newest row")
	c.Pop(9)
	require.Equal(t, 2, c.Len())
	require.EqualValues(t, 5, c.Row(1))
}

func TestColumn_valueOfADroppedRow(t *testing.T) {
	var c Column
	kept, dropped := &late{v: 1}, &late{v: 2}
	c.Add(1, kept)
	c.Add(2, dropped)
	c.Add(3, Number(3))
	values := []Value{c.Value(0), c.Value(1), c.Value(2)}
	c.Keep(func(row int64) bool { return row != 2 })
	for i, want := range []float64{1, 0, 3} {
		v, err := values[i].Float()
		require.Equal(t, want, v)
		require.Equal(t, i == 1, errors.Is(err, errDropped), "%v", err)
	}
	require.Equal(t, 1, kept.reads)
	require.Zero(t, dropped.reads)
}
