package records

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
)

// WriteCSV writes rows with a header. Missing values are empty cells. each calls do with each row, twice.
func WriteCSV(w io.Writer, each func(do func(*Row) error) error) error {
	table := tableOfFields()
	err := each(func(r *Row) error { table.widen(r); return r.Check() })
	if err == nil {
		_, err = w.Write(table.header())
	}
	if err != nil {
		return err
	}
	var line []byte
	return each(func(r *Row) error {
		line = table.append(line[:0], r)
		_, err := w.Write(line)
		return err
	})
}

// ReadCSV calls do with each row of a table, up to an error, which has the position. Only elapsed.steps is required.
func ReadCSV(r io.Reader, do func(*Row) error) error {
	text, _, err := skipMark(r)
	if err != nil {
		return err
	}
	in := csv.NewReader(text)
	in.ReuseRecord = true
	if rows, err := readCSV(in, do); err != nil {
		return fmt.Errorf("row %d: %w", rows+1, err)
	}
	return nil
}

func readCSV(in *csv.Reader, do func(*Row) error) (rows int, err error) {
	first, err := in.Read()
	if err == io.EOF {
		return 0, errors.New("no line of column names")
	}
	if err != nil {
		return 0, err
	}
	columns := slices.Clone(first)
	if err := checkColumns(columns); err != nil {
		return 0, fmt.Errorf("line 1: %w", err)
	}
	var row Row
	for ; ; rows++ {
		cells, err := in.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		row.Reset(Elapsed{Batch: UnknownBatch})
		for i, text := range cells {
			if text == "" && columns[i] != stepsField {
				continue
			}
			if err := row.set(columns[i], text); err != nil {
				line, at := in.FieldPos(i)
				return rows, fmt.Errorf("line %d, byte %d: %s: %w", line, at, columns[i], err)
			}
		}
		if err := do(&row); err != nil {
			line, _ := in.FieldPos(0)
			return rows, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// Spreadsheets write a byte-order mark.
func skipMark(r io.Reader) (text io.Reader, mark int64, err error) {
	const byteOrderMark = "\ufeff"
	in := bufio.NewReader(r)
	switch first, err := in.Peek(len(byteOrderMark)); {
	case err != nil && err != io.EOF: // the reader may report it only once
		return nil, 0, err
	case string(first) == byteOrderMark:
		n, err := in.Discard(len(first))
		return in, int64(n), err
	}
	return in, 0, nil
}

func checkColumns(columns []string) error {
	seen := map[string]bool{}
	for _, c := range columns {
		if seen[c] {
			return fmt.Errorf("column %q comes twice", c)
		}
		seen[c] = true
		if fieldOf(c) != nil {
			continue
		}
		if _, _, err := SplitColumn(c); err != nil {
			return err
		}
	}
	if !seen[stepsField] {
		return errors.New("no column " + stepsField)
	}
	return nil
}

type table struct {
	columns []string
	at      map[string]int
	cells   []float64
	filled  []bool
}

// widen adds the columns of the epochs and the row.
func tableOfFields(without ...string) *table {
	t := tableOf(nil)
	for _, f := range Fields {
		if f.Name != epochsField && !slices.Contains(without, f.Name) {
			t.put(f.Path())
		}
	}
	return t
}

func tableOf(columns []string) *table {
	t := &table{at: map[string]int{}}
	for _, c := range columns {
		t.put(c)
	}
	return t
}

func (t *table) put(column string) {
	t.at[column] = len(t.columns)
	t.columns = append(t.columns, column)
}

func (t *table) widen(r *Row) int {
	before := len(t.columns)
	const epochs = Collection + "." + epochsField
	if _, ok := t.at[epochs]; !ok && r.Epochs > 0 {
		t.put(epochs)
	}
	if _, ok := t.at[rowField.Path()]; !ok && r.Row > 0 {
		t.put(rowField.Path())
	}
	for _, c := range r.Columns {
		if _, ok := t.at[c]; !ok {
			t.put(c)
		}
	}
	return len(t.columns) - before
}

func (t *table) header() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(t.columns) // a Buffer returns no error
	w.Flush()
	return b.Bytes()
}

// No cell needs quotes.
func (t *table) append(b []byte, r *Row) []byte {
	t.cells = append(t.cells[:0], make([]float64, len(t.columns))...)
	t.filled = append(t.filled[:0], make([]bool, len(t.columns))...)
	for i, c := range r.Columns {
		t.cells[t.at[c]], t.filled[t.at[c]] = r.Numbers[i], true
	}
	for i, c := range t.columns {
		if i > 0 {
			b = append(b, ',')
		}
		if t.filled[i] {
			b = appendNumber(b, t.cells[i])
		} else if f := fieldOf(c); f != nil {
			b = f.append(b, r.Elapsed)
		}
	}
	return append(b, '\n')
}
