package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
)

type modelPredict struct {
	Path   string `arg:"" help:"File that Model.Save wrote."`
	File   string `arg:"" help:"Rows: a CSV file with a header, for a model of one input; or lines of JSON (.json, .jsonl), each an object of the inputs by name; - for such lines on stdin."`
	Output string `enum:"auto,csv,json" default:"auto" help:"csv, or json for lines of JSON; that of the rows if it is not given."`
}

func (c modelPredict) Run(s session) (err error) {
	lines := c.File == "-" || slices.Contains([]string{".json", ".jsonl", ".ndjson"}, filepath.Ext(c.File))
	m, err := flaxlike.Open(s.ctx, c.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	var prepared any
	if err := m.Preparation(&prepared); !errors.Is(err, flaxlike.ErrNoPreparation) {
		return fmt.Errorf("%s: the model has a preparation of its data, and this command takes the numbers of the network alone", c.Path)
	}
	read := readCSV
	if lines {
		read = readLines
	}
	set, err := read(c.File, m.Inputs())
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	outputs, err := m.Predict(s.ctx, set)
	if err != nil {
		return err
	}
	for name, a := range outputs {
		if flat, ok := a.Flat.([]float32); ok && slices.ContainsFunc(flat, func(v float32) bool { return v != v }) {
			return fmt.Errorf("%s: the output %q has a NaN", c.File, name)
		}
	}
	if c.Output == "json" || c.Output == "auto" && lines {
		return writeLines(s.stdout, m, set.Len(), outputs)
	}
	return writeCSV(s.stdout, m, set.Len(), outputs)
}

// readCSV takes all columns of a file as the numbers of the only input, in their order.
func readCSV(path string, inputs []flaxlike.Input) (*data.Set, error) {
	if len(inputs) != 1 {
		return nil, fmt.Errorf("the model has %d inputs: give lines of JSON", len(inputs))
	}
	in := inputs[0]
	set, err := data.OpenCSV(path, data.CSV{Fields: []data.CSVField{{Name: in.Name, DType: in.Type}}})
	if err != nil {
		return nil, err
	}
	a := set.Fields()[0].Array
	size, columns := 1, a.Size()/max(1, a.Len())
	for _, n := range in.Dims {
		size *= n
	}
	if size != columns {
		return nil, fmt.Errorf("%d columns, expected the %d numbers of the input %q %v", columns, size, in.Name, in.Dims)
	}
	return data.New(data.Named(in.Name, a.Flat, append([]int{a.Len()}, in.Dims...)...))
}

// readLines takes lines of JSON: objects with an array, or a number, for each input.
func readLines(path string, inputs []flaxlike.Input) (*data.Set, error) {
	from := io.Reader(os.Stdin)
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	flat, rows := make([]reflect.Value, len(inputs)), 0
	for i, in := range inputs {
		of, ok := types[in.Type]
		if !ok {
			return nil, fmt.Errorf("the input %q is %s, which JSON has not", in.Name, in.Type)
		}
		flat[i] = reflect.MakeSlice(reflect.SliceOf(of), 0, 0)
	}
	scan := bufio.NewScanner(from)
	scan.Buffer(nil, 1<<26)
	for n := 1; scan.Scan(); n++ {
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		var row map[string]json.RawMessage
		if err := json.Unmarshal(scan.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		for i, in := range inputs {
			value, ok := row[in.Name]
			if !ok {
				return nil, fmt.Errorf("line %d has no %q; there are %q", n, in.Name, slices.Sorted(maps.Keys(row)))
			}
			var err error
			if flat[i], err = appended(flat[i], value, in.Dims); err != nil {
				return nil, fmt.Errorf("line %d, %q: %w", n, in.Name, err)
			}
			delete(row, in.Name)
		}
		if len(row) > 0 {
			return nil, fmt.Errorf("line %d has %q, which the model does not take", n, slices.Sorted(maps.Keys(row)))
		}
		rows++
	}
	if err := scan.Err(); err != nil {
		return nil, err
	}
	if rows == 0 {
		return nil, errors.New("there are no rows")
	}
	var fields []data.Field
	for i, in := range inputs {
		fields = append(fields, data.Named(in.Name, flat[i].Interface(), append([]int{rows}, in.Dims...)...))
	}
	return data.New(fields...)
}

var types = map[string]reflect.Type{
	"bool": reflect.TypeFor[bool](), "float32": reflect.TypeFor[float32](), "float64": reflect.TypeFor[float64](),
	"int8": reflect.TypeFor[int8](), "int16": reflect.TypeFor[int16](), "int32": reflect.TypeFor[int32](), "int64": reflect.TypeFor[int64](),
	"uint8": reflect.TypeFor[uint8](), "uint16": reflect.TypeFor[uint16](), "uint32": reflect.TypeFor[uint32](), "uint64": reflect.TypeFor[uint64](),
}

// appended adds the numbers of an array of these dims.
func appended(flat reflect.Value, text json.RawMessage, dims []int) (reflect.Value, error) {
	if len(dims) == 0 {
		number := reflect.New(flat.Type().Elem())
		if string(text) == "null" {
			return flat, errors.New("a value is null, expected a number")
		}
		err := json.Unmarshal(text, number.Interface())
		return reflect.Append(flat, number.Elem()), err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return flat, err
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

// likeliest is the name of the class with the largest number in a row of an output, "" if its classes have no names.
func likeliest(m *flaxlike.Model, output string, row reflect.Value) string {
	names, best := m.ClassNames(output), 0
	if len(names) == 0 || row.Len() != len(names) || !row.Index(0).CanFloat() {
		return ""
	}
	for i := range row.Len() {
		if row.Index(i).Float() > row.Index(best).Float() {
			best = i
		}
	}
	return names[best]
}

// row is what an output says of an example.
func row(a data.Array, i int) reflect.Value {
	size := a.Size() / max(1, a.Len())
	return reflect.ValueOf(a.Flat).Slice(i*size, (i+1)*size)
}

func writeLines(w io.Writer, m *flaxlike.Model, rows int, outputs map[string]data.Array) error {
	e := json.NewEncoder(w)
	for i := range rows {
		line := map[string]any{}
		for name, a := range outputs {
			if line[name] = row(a, i).Interface(); likeliest(m, name, row(a, i)) != "" {
				line[name+"_class"] = likeliest(m, name, row(a, i))
			}
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func writeCSV(w io.Writer, m *flaxlike.Model, rows int, outputs map[string]data.Array) error {
	c, names := csv.NewWriter(w), slices.Sorted(maps.Keys(outputs))
	var header []string
	for _, name := range names {
		r := row(outputs[name], 0)
		for i := range r.Len() {
			header = append(header, fmt.Sprintf("%s_%d", name, i))
		}
		if likeliest(m, name, r) != "" {
			header = append(header, name+"_class")
		}
	}
	err := c.Write(header)
	for i := 0; i < rows && err == nil; i++ {
		var cells []string
		for _, name := range names {
			r := row(outputs[name], i)
			for k := range r.Len() {
				cells = append(cells, fmt.Sprint(r.Index(k)))
			}
			if class := likeliest(m, name, r); class != "" {
				cells = append(cells, class)
			}
		}
		err = c.Write(cells)
	}
	c.Flush()
	return errors.Join(err, c.Error())
}
