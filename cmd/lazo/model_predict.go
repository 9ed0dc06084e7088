package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/answers"
)

type modelPredict struct {
	Path    string   `arg:"" help:"File that Model.Save wrote; or a folder of the Hugging Face hub with a classifier of texts."`
	File    string   `arg:"" help:"Rows: a CSV file with a header, of the columns that the model's preparation takes; without a preparation the numbers of the model's only input, with or without a header of names; or lines of JSON (.json, .jsonl), each an object of the columns, or the inputs, by name; - for such lines on stdin; or a PNG or JPEG image, of exactly the height and width of the model's only input. For a classifier of texts: a file of lines; or columns, or fields of JSON, text and maybe pair."`
	Most    int      `help:"For a classifier of texts: cut them after so many tokens. Default: longer texts than it takes are an error."`
	Missing []string `help:"Texts that stand for a missing value in the columns of a CSV file, as NA, besides those that the preparation was fitted with; an empty cell does always."`
	Output  string   `enum:"auto,csv,json" default:"auto" help:"csv, or json for lines of JSON; that of the rows if it is not given."`
	adapterFlag
}

var (
	jsonSuffixes  = []string{".json", ".jsonl", ".ndjson"}
	imageSuffixes = []string{".png", ".jpg", ".jpeg"}
)

func (c modelPredict) Run(s session) (err error) {
	if err := needModel(c.Path); err != nil {
		return err
	}
	if isPretrained(c.Path) {
		return c.texts(s)
	}
	switch {
	case c.Most != 0:
		return errors.New("--most is for a classifier of texts, and this is a saved model")
	case c.Adapter != "":
		return errors.New("--adapter is for a classifier of texts, and this is a saved model")
	}
	lines := c.File == "-" || slices.Contains(jsonSuffixes, filepath.Ext(c.File))
	m, err := flaxlike.Open(s.ctx, c.Path)
	if err != nil {
		return ofProgram(c.Path, err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	rows, err := c.answers(s.ctx, m, lines)
	if err != nil {
		return fmt.Errorf("%s: %w", source(c.File), err)
	}
	if c.Output == "json" || c.Output == "auto" && lines {
		err = writeLines(s.stdout, rows)
	} else {
		err = writeCSV(s.stdout, rows)
	}
	if err != nil {
		return err
	}
	first, all := -1, 0
	for i, r := range rows {
		if r.wrong != "" {
			if all++; first < 0 {
				first = i
			}
		}
	}
	if all > 0 {
		return fmt.Errorf("%s: %d of %d rows have a NaN or an infinity in their answers, which are written; row %d: %s", source(c.File), all, len(rows), first+1, rows[first].wrong)
	}
	return nil
}

func ofProgram(path string, err error) error {
	d, none := flaxlike.Describe(path)
	if none != nil {
		return err
	}
	for _, line := range d.Network {
		if own, is := strings.CutSuffix(strings.TrimSpace(line), " (own)"); is {
			return fmt.Errorf("%s: the network has the layer %q of its own program, so this command cannot open it: a Go program with that layer can, "+
				"by flaxlike.Open and WithLayer", path, own)
		}
	}
	if d.Code != "" {
		return fmt.Errorf("%s: the network is code of its own program, so this command cannot open it: a Go program with it can, by flaxlike.Open and WithNetwork", path)
	}
	return err
}

// withFlags replaces package tables's advice about a cell that is not a number.
func withFlags(err error, prepared, lines bool) error {
	for _, advice := range []string{": if it marks a missing value, ", ": if it is a class, "} {
		text, _, ours := strings.Cut(err.Error(), advice)
		switch {
		case !ours:
		case !prepared:
			return fmt.Errorf("%s: the model takes only numbers", text)
		case lines:
			return fmt.Errorf("%s: if it marks a missing value, write null", text)
		default:
			return fmt.Errorf("%s: if it marks a missing value, pass it to --missing, as --missing NA", text)
		}
	}
	return err
}

func (c modelPredict) answers(ctx context.Context, m *flaxlike.Model, lines bool) (rows []answered, err error) {
	said := m.Describe()
	prepared := m.Preparation() != nil
	switch {
	case prepared:
	case len(c.Missing) > 0:
		return nil, errors.New("--missing is for a model with a preparation, and it has none")
	case lines:
		return answerLines(ctx, m, c.File, said.Inputs)
	}
	p, err := c.predict(ctx, m, said, lines)
	if err != nil {
		return nil, withFlags(err, prepared, lines)
	}
	return answersOf(p)
}

func (c modelPredict) predict(ctx context.Context, m *flaxlike.Model, said flaxlike.Description, lines bool) (p flaxlike.Prediction, err error) {
	var set *data.Set
	switch {
	case m.Preparation() == nil && slices.Contains(imageSuffixes, strings.ToLower(filepath.Ext(c.File))):
		set, err = readImage(c.File, said.Inputs)
	case m.Preparation() == nil:
		set, err = readCSV(c.File, said.Inputs)
	case lines:
		rows, err := readRows(c.File)
		if err != nil {
			return p, err
		}
		return m.PredictRows(ctx, rows...)
	default:
		set, err = tables.Open(c.File, tables.Format{Texts: true, Missing: c.Missing})
	}
	if err != nil {
		return p, err
	}
	return m.Predict(ctx, set)
}

type alike struct {
	dims [][]int
	flat []reflect.Value
	rows []int
}

// Lines may differ in length, also from the build's: the model refuses what it cannot take.
func answerLines(ctx context.Context, m *flaxlike.Model, path string, inputs []flaxlike.Input) ([]answered, error) {
	rows, lots, by := 0, []*alike(nil), map[string]*alike{}
	for _, in := range inputs {
		if types[in.Type] == nil {
			return nil, fmt.Errorf("the input %q is %s, which JSON cannot represent", in.Name, in.Type)
		}
	}
	err := eachLine(path, func(line []byte) error {
		var row map[string]json.RawMessage
		if err := json.Unmarshal(line, &row); err != nil {
			return inJSON(err, fmt.Sprintf(`an object with a value for each input, as {%q: …}`, inputs[0].Name))
		}
		dims := make([][]int, len(inputs))
		for i, in := range inputs {
			value, ok := row[in.Name]
			if !ok {
				return fmt.Errorf("the field %q is missing, got %q", in.Name, slices.Sorted(maps.Keys(row)))
			}
			dims[i] = dimsOf(value, in.Dims)
		}
		lot := by[fmt.Sprint(dims)]
		if lot == nil {
			lot = &alike{dims: dims, flat: make([]reflect.Value, len(inputs))}
			for i, in := range inputs {
				lot.flat[i] = reflect.MakeSlice(reflect.SliceOf(types[in.Type]), 0, 0)
			}
			lots, by[fmt.Sprint(dims)] = append(lots, lot), lot
		}
		for i, in := range inputs {
			var err error
			if lot.flat[i], err = appended(lot.flat[i], row[in.Name], dims[i]); err != nil {
				return fmt.Errorf("%q: %w", in.Name, err)
			}
			delete(row, in.Name)
		}
		if len(row) > 0 {
			return fmt.Errorf("got the field %q, which the model does not take", slices.Sorted(maps.Keys(row)))
		}
		lot.rows = append(lot.rows, rows)
		rows++
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]answered, rows)
	for _, lot := range lots {
		var fields []data.Field
		for i, in := range inputs {
			fields = append(fields, data.Named(in.Name, lot.flat[i].Interface(), append([]int{len(lot.rows)}, lot.dims[i]...)...))
		}
		set, err := data.New(fields...)
		if err != nil {
			return nil, err
		}
		of, err := answer(ctx, m, set)
		if err != nil && len(lots) > 1 {
			return nil, fmt.Errorf("row %d and those of its lengths: %w", lot.rows[0]+1, err)
		} else if err != nil {
			return nil, err
		}
		for i, row := range lot.rows {
			all[row] = of[i]
		}
	}
	return all, nil
}

type answered struct {
	columns []answers.Column
	row     int
	wrong   string // names a NaN or an infinity
}

func answer(ctx context.Context, m *flaxlike.Model, set *data.Set) (rows []answered, err error) {
	p, err := m.Predict(ctx, set)
	if err != nil {
		return nil, err
	}
	return answersOf(p)
}

// answersOf leaves out the answers of a row whose classes are of a NaN or an infinity.
func answersOf(p flaxlike.Prediction) (rows []answered, err error) {
	classes, odds := map[string][]string{}, map[string]data.Array{}
	for _, name := range p.Outputs() {
		if kind, _ := p.Kind(name); kind != "numbers" && kind != "unknown" {
			if classes[name], err = p.ClassNames(name); err == nil {
				odds[name], err = p.Output(name)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	var of []int // the rows with classes
	without := answers.NotFinite(odds)
	for i := range p.Len() {
		if without == nil || without[i] == "" {
			of = append(of, i)
		}
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("row 1: %s", without[0])
	}
	if p, err = p.Gather(of); err != nil {
		return nil, err
	}
	outputs, err := p.Answers()
	if err != nil {
		return nil, err
	}
	columns, wrong := answers.Columns(outputs, classes), answers.NotFinite(outputs)
	rows = make([]answered, max(len(of), len(without)))
	for i := range rows {
		rows[i] = answered{columns: answers.Blank(columns)}
		if without != nil {
			rows[i].wrong = without[i]
		}
	}
	for k, i := range of {
		rows[i] = answered{columns: columns, row: k}
		if wrong != nil {
			rows[i].wrong = wrong[k]
		}
	}
	return rows, nil
}

func writeLines(w io.Writer, rows []answered) error {
	e := json.NewEncoder(w)
	for _, r := range rows {
		if err := e.Encode(answers.Object(r.columns, r.row)); err != nil {
			return err
		}
	}
	return nil
}

func writeCSV(w io.Writer, rows []answered) error {
	records := [][]string{headerOf(rows[0])}
	for i, r := range rows {
		if header := headerOf(r); len(header) != len(records[0]) {
			return fmt.Errorf("row %d has %d columns of outputs, and row 1 has %d, because its inputs have other lengths: give --output json", i+1, len(header), len(records[0]))
		}
		var cells []string
		for _, of := range r.columns {
			for _, v := range of.Cells(r.row) {
				cells = append(cells, fmt.Sprint(v))
			}
		}
		records = append(records, cells)
	}
	return csv.NewWriter(w).WriteAll(records)
}

func headerOf(r answered) (header []string) {
	for _, c := range r.columns {
		header = append(header, c.Header...)
	}
	return header
}
