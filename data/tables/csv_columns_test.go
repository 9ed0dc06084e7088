package tables

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// If a beginner's file has something that the format does not declare, the message names the setting.
func TestR41_messagesNameTheSetting(t *testing.T) {
	for file, want := range map[string]string{
		"x,y\n1,cat\n": `column "y": the cell "cat" cannot be read as float32: invalid syntax: if it is a class, name all of them in CSVField.Classes; else leave the column out (CSVField.Columns)`,
		"x,y\n1,NA\n":  `column "y": the cell "NA" cannot be read as float32: invalid syntax: if it marks a missing value, name "NA" in CSV.Missing, and set CSVField.Fill to its replacement`,
		"x,y\n1,nan\n": `the cell "nan" cannot be read as float32: expected a finite number: if it marks a missing value, name "nan" in CSV.Missing`,
		"x;y\n1;2\n":   `the cell "1;2" cannot be read as float32: invalid syntax: set CSV.Comma to ';' if that separates the cells`,
		"x\ty\n1\t2\n": `set CSV.Comma to '\t' if that separates the cells`,
		"x\n99e999\n":  `the cell "99e999" cannot be read as float32: value out of range`,
		"x,y\n1,\n":    `column "y": the cell "" marks a missing value; set CSVField.Fill to its replacement, or leave the column out`,
	} {
		_, err := ReadCSV(strings.NewReader(file), CSV{})
		require.ErrorContains(t, err, want, file)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := ReadCSV(strings.NewReader("x;y\n1;2\n"), CSV{Fields: []CSVField{{Name: "x", Columns: []string{"y"}}}})
	require.ErrorContains(t, err, `field "x": there is no column "y"; there are ["x;y"]: set CSV.Comma to ';' if that separates the cells`)
	_, err = ReadCSV(strings.NewReader("x\n1.5\n"), CSV{Fields: []CSVField{{Name: "x", DType: "int32"}}})
	require.ErrorContains(t, err, `the cell "1.5" cannot be read as int32: invalid syntax: set CSVField.DType to a dtype that can hold it`)

	empty, err := New(X([]float32{}, 0))
	require.NoError(t, err)
	require.EqualError(t, first(empty.Batches(4).All()), "data: batches of 4 from 0 examples: the set is empty: check its source (data.New, a slice, Where, a file)")
	masked := Batch{Size: 1, Fields: []Field{Named(Mask, []float32{1, 0}, 1, 2)}}
	_, err = Pad(masked, 2)
	require.EqualError(t, err, `data: pad: field "mask" is float32 [1 2], expected a bool for each of 1 rows: rename it if it is not a mask of padding`)
}
