package parquet

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// A table for a preparation: the texts are those that a CSV file of the same values has.
func TestTexts(t *testing.T) {
	type bird struct {
		Mass   *float64 `parquet:"mass,optional"`
		Island *string  `parquet:"island,optional"`
		Year   int32    `parquet:"year"`
		Ring   uint64   `parquet:"ring"`
		Male   bool     `parquet:"male"`
		Short  float32  `parquet:"short"`
	}
	file := written(t, []bird{
		{new(3750.5), new("Dream"), 2007, math.MaxUint64, true, 0.5}, {nil, nil, -1, 2, false, 1}, {new(math.NaN()), new(" x"), 0, 0, true, -2},
	})
	table, err := open(file, Format{Texts: true})
	require.NoError(t, err)
	want, err := data.New(data.Named("mass", []string{"3750.5", "", ""}, 3), data.Named("island", []string{"Dream", "", " x"}, 3),
		data.Named("year", []string{"2007", "-1", "0"}, 3), data.Named("ring", []string{"18446744073709551615", "2", "0"}, 3),
		data.Named("male", []string{"true", "false", "true"}, 3), data.Named("short", []string{"0.5", "1", "-2"}, 3))
	require.NoError(t, err)
	require.ElementsMatch(t, want.Fields(), table.Fields())
	for want, format := range map[string]Format{
		"the format has both Texts and Fields":                {Texts: true, Fields: []Field{{Name: "x"}}},
		`columns "male" and "year", of which one holds truth`: {Fields: []Field{{Name: "x", DType: "string", Columns: []string{"male", "year"}}}},
	} {
		_, err = open(file, format)
		require.ErrorContains(t, err, want)
	}
	// Few bytes of a dictionary can be any number of texts: they count as long as they are.
	long := make([]bird, 5000)
	for i := range long {
		long[i].Island = new(strings.Repeat("x", 1000))
	}
	_, err = open(written(t, long), Format{Texts: true, Limit: 4_000_000})
	require.ErrorIs(t, err, data.ErrLimit)
	_, err = Open("testdata/default.parquet", Format{Texts: true})
	require.ErrorContains(t, err, `column "list" holds lists, which are not texts`)
	two, err := Open("testdata/default.parquet", Format{Fields: []Field{{Name: "x", DType: "string", Columns: []string{"text", "null"}}}})
	require.NoError(t, err)
	x, err := two.Field("x")
	require.NoError(t, err)
	require.Equal(t, []string{"cat", "", "dog", "1"}, x.Flat.([]string)[:4])
}
