package data

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// If a beginner's file has something that the format does not declare, the message names the setting.
func TestR41_messagesNameTheSetting(t *testing.T) {
	for file, want := range map[string]string{
		"x,y\n1,cat\n": `column "y": the cell "cat" is no float32: invalid syntax: if it is a class, name all of them in CSVField.Classes; else leave the column out (CSVField.Columns)`,
		"x,y\n1,NA\n":  `column "y": the cell "NA" is no float32: invalid syntax: if that is no value, name "NA" in CSV.Missing, and in CSVField.Fill what to take for it`,
		"x,y\n1,nan\n": `the cell "nan" is no float32: expected a finite number: if that is no value, name "nan" in CSV.Missing`,
		"x;y\n1;2\n":   `the cell "1;2" is no float32: invalid syntax: set CSV.Comma to ';' if that separates the cells`,
		"x\ty\n1\t2\n": `set CSV.Comma to '\t' if that separates the cells`,
		"x\n99e999\n":  `the cell "99e999" is no float32: value out of range`,
		"x,y\n1,\n":    `column "y": the cell "" is missing a value; set CSVField.Fill to take a value for it, or leave the column out`,
	} {
		_, err := ReadCSV(strings.NewReader(file), CSV{})
		require.ErrorContains(t, err, want, file)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := ReadCSV(strings.NewReader("x;y\n1;2\n"), CSV{Fields: []CSVField{{Name: "x", Columns: []string{"y"}}}})
	require.ErrorContains(t, err, `field "x": there is no column "y"; there are ["x;y"]: set CSV.Comma to ';' if that separates the cells`)
	_, err = ReadCSV(strings.NewReader("x\n1.5\n"), CSV{Fields: []CSVField{{Name: "x", DType: "int32"}}})
	require.ErrorContains(t, err, `the cell "1.5" is no int32: invalid syntax: set CSVField.DType to a type that has it`)

	empty, err := New(X([]float32{}, 0))
	require.NoError(t, err)
	require.EqualError(t, first(empty.Batches(4).All()), "data: batches of 4 from 0 examples: the set is empty: look at what it was made of (data.New, a slice, Where, a file)")
	masked := Batch{Size: 1, Fields: []Field{Named(Mask, []float32{1, 0}, 1, 2)}}
	_, err = Pad(masked, 2)
	require.EqualError(t, err, `data: pad: field "mask" is float32 [1 2], expected a bool for each of 1 rows: rename it if it is no mask of padding`)
}
