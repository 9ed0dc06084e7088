package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
)

func readRows(path string) (rows []map[string]any, err error) {
	err = eachLine(path, func(line []byte) error {
		row := map[string]any{}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		err := d.Decode(&row)
		rows = append(rows, row)
		return inJSON(err, `an object with a value for each column, as {"mass": 1.5}`)
	})
	return rows, err
}

// inJSON names the JSON found, not Go's types.
func inJSON(err error, expected string) error {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("it has a JSON %s, expected %s", wrong.Value, expected)
	}
	return err
}

func source(path string) string {
	if path == "-" {
		return "stdin"
	}
	return path
}

// The nonempty lines of a file or stdin, or a JSON array's elements. No line is an error.
func eachLine(path string, f func(line []byte) error) error {
	from := io.Reader(os.Stdin)
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		from = file
	}
	err := eachRow(bufio.NewReader(from), f)
	if wrong := (*json.SyntaxError)(nil); path == "-" && errors.As(err, &wrong) {
		return fmt.Errorf("%w: stdin takes lines of JSON: give the name of a file of CSV", err)
	}
	return err
}

func eachRow(text *bufio.Reader, f func(line []byte) error) error {
	rows := 0
	one := func(kind string, n int, line []byte) error {
		if err := f(line); err != nil {
			return fmt.Errorf("%s %d: %w", kind, n, err)
		}
		rows++
		return nil
	}
	if err := eachOf(text, one); err != nil {
		return err
	}
	if rows == 0 {
		return errors.New("there are no rows")
	}
	return nil
}

func eachOf(text *bufio.Reader, one func(kind string, n int, line []byte) error) error {
	for {
		first, err := text.Peek(1)
		if err == nil && bytes.ContainsAny(first, " \t\r\n") {
			_, _ = text.Discard(1)
			continue
		}
		if err == nil && first[0] == '[' {
			break
		}
		scan := bufio.NewScanner(text)
		scan.Buffer(nil, 1<<26)
		for n := 1; scan.Scan(); n++ {
			if len(bytes.TrimSpace(scan.Bytes())) == 0 {
				continue
			}
			if err := one("line", n, scan.Bytes()); err != nil {
				return err
			}
		}
		return scan.Err()
	}
	d := json.NewDecoder(text)
	_, err := d.Token()
	for n := 1; err == nil && d.More(); n++ {
		var row json.RawMessage
		if err = d.Decode(&row); err == nil {
			err = one("row", n, row)
		}
	}
	if err == nil {
		_, err = d.Token()
	}
	return err
}

func readCSV(path string, inputs []flaxlike.Input) (*data.Set, error) {
	if len(inputs) != 1 {
		return nil, fmt.Errorf("the model has %d inputs: give lines of JSON", len(inputs))
	}
	in := inputs[0]
	header, err := hasHeader(path, in.Type)
	if err != nil {
		return nil, err
	}
	set, err := tables.Open(path, tables.Format{NoHeader: !header, Fields: []tables.Field{{Name: in.Name, DType: in.Type}}})
	if err != nil {
		return nil, err
	}
	a := set.Fields()[0].Array
	size, columns := 1, a.Size()/max(1, a.Len())
	if len(in.Dims) == 1 { // the model refuses wrong lengths
		in.Dims = []int{columns}
	}
	for _, n := range in.Dims {
		size *= n
	}
	if size != columns {
		return nil, fmt.Errorf("%d columns, expected the %d numbers of the input %q %v: give sequences of another length as lines of JSON", columns, size, in.Name, in.Dims)
	}
	return data.New(data.Named(in.Name, a.Flat, append([]int{a.Len()}, in.Dims...)...))
}

// readImage resizes nothing: a model does not have the images.Format that it was trained with.
func readImage(path string, inputs []flaxlike.Input) (*data.Set, error) {
	if len(inputs) != 1 || inputs[0].Type != "float32" || len(inputs[0].Dims) != 3 {
		return nil, fmt.Errorf("the model takes %v, and an image is one input float32 [height, width, channels]", inputs)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	of := inputs[0]
	a, err := images.Read(file, images.Format{Height: of.Dims[0], Width: of.Dims[1], Channels: of.Dims[2]})
	if size := (*images.SizeError)(nil); errors.As(err, &size) {
		err = fmt.Errorf("%w: resize the image as those of the training were", size)
	}
	if err != nil {
		return nil, err
	}
	return data.New(data.Named(of.Name, a.Flat, append([]int{1}, a.Dims...)...))
}

// A row of numbers is an example, not a header.
func hasHeader(path, dtype string) (bool, error) {
	value := func(cell string) (err error) {
		if dtype == "bool" {
			_, err = strconv.ParseBool(cell)
		} else if _, err = strconv.ParseFloat(cell, 64); errors.Is(err, strconv.ErrRange) {
			err = nil
		}
		return err
	}
	for b, err := range tables.Stream(path, tables.Format{Texts: true, NoHeader: true}, 1) {
		if err != nil {
			return false, err
		}
		var row []string
		numbers, counts := 0, [2]bool{true, true}
		for i, f := range b.Fields {
			cell := f.Array.Flat.([]string)[0]
			row = append(row, cell)
			if value(cell) == nil {
				numbers++
			}
			for from := range counts {
				counts[from] = counts[from] && cell == strconv.Itoa(from+i)
			}
		}
		switch {
		case !slices.ContainsFunc(row, func(cell string) bool { return cell != "" }):
			continue
		case numbers == 0:
			return true, nil
		case numbers == len(row) && !counts[0] && !counts[1]:
			return false, nil
		}
		return false, fmt.Errorf("row 1 is %q, expected numbers, or names of the columns: it may be an example or a header: put a line of names before it if it is an "+
			"example; else replace it by names that are not numbers", row)
	}
	return false, errors.New("there are no rows")
}

// By the first elements, where there is none the model's, which appended refuses.
func dimsOf(text json.RawMessage, built []int) []int {
	dims := slices.Clone(built)
	for i := range dims {
		var parts []json.RawMessage
		if json.Unmarshal(text, &parts) != nil || len(parts) == 0 {
			break
		}
		dims[i], text = len(parts), parts[0]
	}
	return dims
}

var types = map[string]reflect.Type{
	"bool": reflect.TypeFor[bool](), "float32": reflect.TypeFor[float32](), "float64": reflect.TypeFor[float64](),
	"int8": reflect.TypeFor[int8](), "int16": reflect.TypeFor[int16](), "int32": reflect.TypeFor[int32](), "int64": reflect.TypeFor[int64](),
	"uint8": reflect.TypeFor[uint8](), "uint16": reflect.TypeFor[uint16](), "uint32": reflect.TypeFor[uint32](), "uint64": reflect.TypeFor[uint64](),
}

func appended(flat reflect.Value, text json.RawMessage, dims []int) (reflect.Value, error) {
	if len(dims) == 0 {
		number := reflect.New(flat.Type().Elem())
		if string(text) == "null" {
			return flat, errors.New("a value is null, expected a number")
		}
		err := json.Unmarshal(text, number.Interface())
		return reflect.Append(flat, number.Elem()), inJSON(err, flat.Type().Elem().String())
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return flat, inJSON(err, fmt.Sprintf("an array of dims %v", dims))
	}
	if len(parts) != dims[0] {
		return flat, fmt.Errorf("%d values, expected dims %v", len(parts), dims)
	}
	for _, p := range parts {
		var err error
		if flat, err = appended(flat, p, dims[1:]); err != nil {
			return flat, err
		}
	}
	return flat, nil
}
