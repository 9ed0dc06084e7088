package tables

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestReadCSV_emptyLineOfOneColumnIsAnEmptyCell(t *testing.T) {
	filled := Format{Fields: []Field{{Name: "x", Fill: "9"}}}
	bare := Format{NoHeader: true, Fields: filled.Fields}
	for _, c := range []struct {
		text   string
		format Format
		want   []float32
	}{
		{"a\n1\n\n3\n", filled, []float32{1, 9, 3}},
		{"a\r\n\r\n1\r\n\r\n\r\n3", filled, []float32{9, 1, 9, 9, 3}},
		{"\n\na\n1\n3\n\n\n", filled, []float32{1, 3}},
		{"\"a\n\nb\"\n1\n\n3\n", filled, []float32{1, 9, 3}},
		{"a\n\"1\n\n\"\n3\n", filled, []float32{1, 3}},
		{"\n1\n\n3\n\n", bare, []float32{9, 1, 9, 3}},
	} {
		set, err := Read(strings.NewReader(c.text), c.format)
		require.NoError(t, err, "%q", c.text)
		want, err := data.New(data.X(c.want, len(c.want), 1))
		require.NoError(t, err)
		require.Equal(t, want, set, "%q", c.text)
	}
	var row *data.RowError
	_, err := Read(strings.NewReader("a\n1\n\n3\n"), Format{})
	require.ErrorAs(t, err, &row)
	require.Equal(t, []int{2, 3}, []int{row.Row, row.Line})
	_, err = Read(strings.NewReader("a\n1\n\nb\n"), filled)
	require.ErrorAs(t, err, &row)
	require.Equal(t, []int{3, 4}, []int{row.Row, row.Line})
	_, err = Read(strings.NewReader("a\n1\n\n3,4\n"), filled)
	require.ErrorAs(t, err, &row)
	require.Equal(t, []int{3, 4}, []int{row.Row, row.Line})
	several, err := Read(strings.NewReader("a,b\n1,2\n\n3,4\n"), filled)
	require.NoError(t, err)
	require.Equal(t, 2, several.Len())
}
