package parquet

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestCursor_open(t *testing.T) {
	c := &cursor{leaf: &leaf{name: "a", typ: 2}}
	require.NoError(t, c.open(chunk{typ: 2, at: 4, length: 96, values: 3}, 100))
	require.Equal(t, []int64{4, 100, 3}, []int64{c.at, c.end, c.values})
	require.NoError(t, c.open(chunk{typ: 2, at: -7}, 100), "without values it has no pages")
	more, err := c.peek()
	require.NoError(t, err)
	require.False(t, more)
	for want, k := range map[string]chunk{
		"type 1 in a row group, and 2 in the schema": {typ: 1, at: 4, values: 1},
		"it is in another file, or encrypted":        {typ: 2, at: 4, values: 1, elsewhere: true},
		"1 values in 97 bytes from byte 4 on":        {typ: 2, at: 4, length: 97, values: 1},
		"1 values in 5 bytes from byte 3 on":         {typ: 2, at: 3, length: 5, values: 1},
		"-1 values in 5 bytes from byte 4 on":        {typ: 2, at: 4, length: 5, values: -1},
		"expected them between byte 4 and 100":       {typ: 2, at: 1 << 62, length: 1 << 62, values: 1},
	} {
		require.ErrorContains(t, c.open(k, 100), want)
	}
	require.NoError(t, c.open(chunk{typ: 2, at: 50, values: 3}, 100))
	_, err = c.peek()
	var format *data.FormatError
	require.ErrorAs(t, err, &format)
	require.EqualValues(t, 50, format.Offset)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, `column "a": the pages end 3 values too early`)
	require.False(t, errors.As(c.damage(data.ErrLimit), &format), "a limit is no damage")
}

func TestLevel(t *testing.T) {
	r := &runs{b: []byte{2 << 1, 2}, width: 2}
	n, err := level(r, 2)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = level(r, 1)
	require.EqualError(t, err, "a level of 2, expected at most 1")
}
