package tables

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// If a beginner's file has something that the format does not declare, the message names the setting.
func TestR41_messagesNameTheSetting(t *testing.T) {
	for file, want := range map[string]string{
		"x,y\n1,cat\n": `column "y": the cell "cat" cannot be read as float32: invalid syntax: if it is a class, name all of them in Field.Classes; else leave the column out (Field.Columns)`,
		"x,y\n1,NA\n":  `column "y": the cell "NA" cannot be read as float32: invalid syntax: if it marks a missing value, name "NA" in Format.Missing, and set Field.Fill to its replacement`,
		"x,y\n1,nan\n": `the cell "nan" cannot be read as float32: expected a finite number: if it marks a missing value, name "nan" in Format.Missing`,
		"x;y\n1;2\n":   `the cell "1;2" cannot be read as float32: invalid syntax: set Format.Comma to ';' if that separates the cells`,
		"x\ty\n1\t2\n": `set Format.Comma to '\t' if that separates the cells`,
		"x\n99e999\n":  `the cell "99e999" cannot be read as float32: value out of range`,
		"x,y\n1,\n":    `column "y": the cell "" marks a missing value; set Field.Fill to its replacement, or leave the column out`,
	} {
		_, err := Read(strings.NewReader(file), Format{})
		require.ErrorContains(t, err, want, file)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := Read(strings.NewReader("x;y\n1;2\n"), Format{Fields: []Field{{Name: "x", Columns: []string{"y"}}}})
	require.ErrorContains(t, err, `field "x": there is no column "y"; there are ["x;y"]: set Format.Comma to ';' if that separates the cells`)
	_, err = Read(strings.NewReader("x\n1.5\n"), Format{Fields: []Field{{Name: "x", DType: "int32"}}})
	require.ErrorContains(t, err, `the cell "1.5" cannot be read as int32: invalid syntax: set Field.DType to a dtype that can hold it`)
}
