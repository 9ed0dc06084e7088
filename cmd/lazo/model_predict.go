package main

import (
	"bufio"
	"bytes"
	"context"
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
	Path    string   `arg:"" help:"File that Model.Save wrote."`
	File    string   `arg:"" help:"Rows: a CSV file with a header, of the columns that the model's preparation takes, or without one the numbers of its only input; or lines of JSON (.json, .jsonl), each an object of the columns, or the inputs, by name; - for such lines on stdin."`
	Missing []string `help:"Texts that stand for a missing value in the columns of a CSV file, as NA, besides those that the preparation was fitted with (data.Missing); an empty cell does always."`
	Output  string   `enum:"auto,csv,json" default:"auto" help:"csv, or json for lines of JSON; that of the rows if it is not given."`
}

func (c modelPredict) Run(s session) (err error) {
	lines := c.File == "-" || slices.Contains([]string{".json", ".jsonl", ".ndjson"}, filepath.Ext(c.File))
	m, err := flaxlike.Open(s.ctx, c.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	set, err := c.read(m, lines)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	a, err := answer(s.ctx, m, set)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if c.Output == "json" || c.Output == "auto" && lines {
		return a.writeLines(s.stdout, m)
	}
	return a.writeCSV(s.stdout, m)
}

// read gives the model's inputs of a file: of a table, as its preparation makes them, or numbers as they are.
func (c modelPredict) read(m *flaxlike.Model, lines bool) (*data.Set, error) {
	prepared := new(data.Preparation)
	switch err := m.Preparation(prepared); {
	case errors.Is(err, flaxlike.ErrNoPreparation):
		if len(c.Missing) > 0 {
			return nil, errors.New("--missing is for a model with a preparation, and it has none")
		}
		if lines {
			return readLines(c.File, m.Inputs())
		}
		return readCSV(c.File, m.Inputs())
	case err != nil:
		return nil, fmt.Errorf("the model has a preparation that is none of package data, so that its own program has to prepare the rows: %w", err)
	case lines:
		return readRows(c.File, prepared)
	}
	table, err := data.OpenCSV(c.File, data.CSV{Texts: true, Missing: c.Missing})
	if err != nil {
		return nil, err
	}
	return table.Map(prepared.Inputs)
}

// readRows takes lines of JSON: objects of the columns by name.
func readRows(path string, prepared *data.Preparation) (*data.Set, error) {
	var rows []map[string]any
	err := eachLine(path, func(line []byte) error {
		row := map[string]any{}
		d := json.NewDecoder(bytes.NewReader(line))
		err := d.Decode(&row)
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return prepared.Rows(rows...)
}

// eachLine calls f with the lines of a file, or of stdin, that are not empty. There must be one.
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
	scan, rows := bufio.NewScanner(from), 0
	scan.Buffer(nil, 1<<26)
	for n := 1; scan.Scan(); n++ {
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		if err := f(scan.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		rows++
	}
	if err := scan.Err(); err != nil {
		return err
	}
	if rows == 0 {
		return errors.New("there are no rows")
	}
	return nil
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
	flat, rows := make([]reflect.Value, len(inputs)), 0
	for i, in := range inputs {
		of, ok := types[in.Type]
		if !ok {
			return nil, fmt.Errorf("the input %q is %s, which JSON has not", in.Name, in.Type)
		}
		flat[i] = reflect.MakeSlice(reflect.SliceOf(of), 0, 0)
	}
	err := eachLine(path, func(line []byte) error {
		var row map[string]json.RawMessage
		if err := json.Unmarshal(line, &row); err != nil {
			return err
		}
		for i, in := range inputs {
			value, ok := row[in.Name]
			if !ok {
				return fmt.Errorf("there is no %q, but %q", in.Name, slices.Sorted(maps.Keys(row)))
			}
			var err error
			if flat[i], err = appended(flat[i], value, in.Dims); err != nil {
				return fmt.Errorf("%q: %w", in.Name, err)
			}
			delete(row, in.Name)
		}
		if len(row) > 0 {
			return fmt.Errorf("there is %q, which the model does not take", slices.Sorted(maps.Keys(row)))
		}
		rows++
		return nil
	})
	if err != nil {
		return nil, err
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

// answers is what a model says of rows.
type answers struct {
	rows int
	// outputs are by name: probabilities of those that classes has, and else the numbers as they are.
	outputs, classes map[string]data.Array
}

func answer(ctx context.Context, m *flaxlike.Model, set *data.Set) (answers, error) {
	outputs, err := m.Predict(ctx, set)
	if err != nil {
		return answers{}, err
	}
	for name, a := range outputs {
		if flat, ok := a.Flat.([]float32); ok && slices.ContainsFunc(flat, func(v float32) bool { return v != v }) {
			return answers{}, fmt.Errorf("the output %q has a NaN", name)
		}
	}
	probabilities, err := m.ProbabilitiesOf(outputs)
	if errors.Is(err, flaxlike.ErrNoProbabilities) {
		return answers{set.Len(), outputs, nil}, nil
	}
	if err != nil {
		return answers{}, err
	}
	classes, err := m.ClassesOf(outputs)
	maps.Copy(outputs, probabilities)
	return answers{set.Len(), outputs, classes}, err
}

// class is what an example is: the name of its one class, or its number where classes have no names; nil of an output
// without classes, and of one with a class in each of several places.
func (a answers) class(m *flaxlike.Model, output string, i int) any {
	classes, ok := a.classes[output]
	if !ok || len(classes.Dims) != 1 {
		return nil
	}
	number := classes.Flat.([]int32)[i]
	if names := m.ClassNames(output); int(number) < len(names) {
		return names[number]
	}
	return number
}

// row is what an output says of an example.
func row(a data.Array, i int) reflect.Value {
	size := a.Size() / max(1, a.Len())
	return reflect.ValueOf(a.Flat).Slice(i*size, (i+1)*size)
}

// column is the name of an output's numbers: they are probabilities where it has classes.
func (a answers) column(output string) string {
	if _, ok := a.classes[output]; ok {
		return output + "_probability"
	}
	return output
}

func (a answers) writeLines(w io.Writer, m *flaxlike.Model) error {
	e := json.NewEncoder(w)
	for i := range a.rows {
		line := map[string]any{}
		for name, numbers := range a.outputs {
			line[a.column(name)] = row(numbers, i).Interface()
			if class := a.class(m, name, i); class != nil {
				line[name+"_class"] = class
			}
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func (a answers) writeCSV(w io.Writer, m *flaxlike.Model) error {
	c, names := csv.NewWriter(w), slices.Sorted(maps.Keys(a.outputs))
	var header []string
	for _, name := range names {
		for i := range row(a.outputs[name], 0).Len() {
			header = append(header, fmt.Sprintf("%s_%d", a.column(name), i))
		}
		if a.class(m, name, 0) != nil {
			header = append(header, name+"_class")
		}
	}
	err := c.Write(header)
	for i := 0; i < a.rows && err == nil; i++ {
		var cells []string
		for _, name := range names {
			r := row(a.outputs[name], i)
			for k := range r.Len() {
				cells = append(cells, fmt.Sprint(r.Index(k)))
			}
			if class := a.class(m, name, i); class != nil {
				cells = append(cells, fmt.Sprint(class))
			}
		}
		err = c.Write(cells)
	}
	c.Flush()
	return errors.Join(err, c.Error())
}
