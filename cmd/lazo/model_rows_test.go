package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
)

// Lines and the elements of an array are rows. An error names the line of the file, or the row of the array.
func TestEachRow(t *testing.T) {
	read := func(text string) (rows []string, err error) {
		err = eachRow(bufio.NewReader(strings.NewReader(text)), func(line []byte) error {
			if rows = append(rows, string(line)); string(line) == "7" {
				return errors.New("it is 7")
			}
			return nil
		})
		return rows, err
	}
	for text, want := range map[string][]string{"1\n\n 2 \r\n": {"1", " 2 "}, "\n\t{\"a\":1}": {`{"a":1}`}, " [1, [2,3] ,\n4]": {"1", "[2,3]", "4"}} {
		rows, err := read(text)
		require.NoError(t, err)
		require.Equal(t, want, rows)
	}
	for text, want := range map[string]string{"": "there are no rows", " \n": "there are no rows", "[]": "there are no rows", "1\n\n7": "line 3: it is 7", "[1,7]": "row 2: it is 7",
		"[1": "EOF", "[1,,2]": "invalid character ','"} {
		_, err := read(text)
		require.ErrorContains(t, err, want, text)
	}
}

// A file is read row by row, with numbers as they are written.
func TestReadRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows")
	write := func(text string) string {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	rows, err := readRows(write(`[{"a": 12345678901234567890, "b": "x"}, {"a": null}]`))
	require.NoError(t, err)
	require.Equal(t, []map[string]any{{"a": json.Number("12345678901234567890"), "b": "x"}, {"a": nil}}, rows)
	_, err = readRows(write("{}\n[1]"))
	require.EqualError(t, err, `line 2: it has a JSON array, expected an object with a value for each column, as {"mass": 1.5}`)
	_, err = readRows(path + "2")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A line of names is a header, one of numbers is an example, and one that may be either is an error.
func TestReadCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	open := func(text, dtype string, dims ...int) ([]int, any, error) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		set, err := readCSV(path, []flaxlike.Input{{Name: "x", Type: dtype, Dims: dims}})
		if err != nil {
			return nil, nil, err
		}
		a := set.Fields()[0].Array
		return a.Dims, a.Flat, nil
	}
	for _, text := range []string{"a,b\n1.5,2\n3,1e40\n", "\n1.5,2\n3,1e40\n"} {
		dims, flat, err := open(text, "float64", 2)
		require.NoError(t, err)
		require.Equal(t, []int{2, 2}, dims)
		require.Equal(t, []float64{1.5, 2, 3, 1e40}, flat)
	}
	dims, flat, err := open("true,false,1,0\n", "bool", 2, 2)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 2}, dims)
	require.Equal(t, []bool{true, false, true, false}, flat)
	for text, want := range map[string]string{"0,1\n5,6\n": `row 1 is ["0" "1"]`, "1,2\n5,6\n": `row 1 is ["1" "2"]`, "a,2\n": `row 1 is ["a" "2"]`, "\n": "the file is empty", ",\n": "there are no rows",
		"a,b,c\n1,2,3\n": `3 columns, expected the 4 numbers of the input "x" [2 2]`} {
		_, _, err := open(text, "float32", 2, 2)
		require.ErrorContains(t, err, want, text)
	}
	_, err = readCSV(path, make([]flaxlike.Input, 2))
	require.EqualError(t, err, "the model has 2 inputs: give lines of JSON")
}

// The lengths are those of the first elements. Each other element must have them.
func TestAppended(t *testing.T) {
	read := func(text string, built ...int) (flat any, dims []int, err error) {
		dims = dimsOf(json.RawMessage(text), built)
		v, err := appended(reflect.MakeSlice(reflect.TypeFor[[]int8](), 0, 4), json.RawMessage(text), dims)
		return v.Interface(), dims, err
	}
	flat, dims, err := read("[[1,2,3],[4,-5,6]]", 9, 9)
	require.NoError(t, err)
	require.Equal(t, []int8{1, 2, 3, 4, -5, 6}, flat)
	require.Equal(t, []int{2, 3}, dims)
	flat, _, err = read("7")
	require.NoError(t, err)
	require.Equal(t, []int8{7}, flat)
	for text, want := range map[string]string{"[[1,2],[3]]": "1 values, expected dims [2]", "[]": "0 values, expected dims [9 9]", "[1,2]": "it has a JSON number, expected an array of dims [9]",
		"[[1,null]]": "a value is null, expected a number", "[[1,128]]": "it has a JSON number 128, expected int8", `[["1"]]`: "it has a JSON string, expected int8", "[[1.5]]": "it has a JSON number 1.5, expected int8"} {
		_, _, err := read(text, 9, 9)
		require.EqualError(t, err, want, text)
	}
}
