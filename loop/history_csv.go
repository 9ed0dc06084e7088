package loop

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
)

// WriteCSV writes all rows under a line of column names: the parts of the elapsed time, then collection.name. A row
// that lacks an entry has an empty cell. Numbers come back to the last bit. It reads all values; a [Payload] that is no
// number is left out. Names are those of [History.WriteJSON].
func (h *History) WriteCSV(w io.Writer) error {
	var columns []string
	for _, f := range fields {
		columns = append(columns, f.path())
	}
	table := tableOf(columns)
	err := h.records(func(r *record) error { table.widen(r); return r.check() })
	if err == nil {
		_, err = w.Write(table.header())
	}
	if err == nil {
		var line []byte
		err = h.records(func(r *record) error {
			line = table.append(line[:0], r)
			_, err := w.Write(line)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("loop: write history: %w", err)
	}
	return nil
}

// ReadCSV adds the rows of a table as [History.WriteCSV] or the option [CSV] makes it; only the column elapsed.steps must
// be there. Steps, samples and time are 0 to 2^62. An error says where; the rows before it have been added.
func (h *History) ReadCSV(r io.Reader) error {
	text, _, err := unmarked(r)
	if err != nil {
		return fmt.Errorf("loop: read history: %w", err)
	}
	in := csv.NewReader(text)
	in.ReuseRecord = true
	if err := h.readCSV(in); err != nil {
		return fmt.Errorf("loop: read history: row %d: %w", h.Len()+1, err)
	}
	return nil
}

func (h *History) readCSV(in *csv.Reader) error {
	first, err := in.Read()
	if err == io.EOF {
		return errors.New("no line of column names")
	}
	if err != nil {
		return err
	}
	columns := slices.Clone(first)
	if err := checkColumns(columns); err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	var rec record
	for {
		cells, err := in.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		rec.reset(row{batch: unknownBatch})
		for i, text := range cells {
			if text == "" && columns[i] != stepsField {
				continue
			}
			if err := rec.set(columns[i], text); err != nil {
				line, at := in.FieldPos(i)
				return fmt.Errorf("line %d, byte %d: %s: %w", line, at, columns[i], err)
			}
		}
		if err := h.take(&rec); err != nil {
			line, _ := in.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// unmarked is r behind a byte-order mark, as spreadsheets and editors write it, and the mark's length.
func unmarked(r io.Reader) (text io.Reader, mark int64, err error) {
	const byteOrderMark = "\ufeff"
	in := bufio.NewReader(r)
	switch first, err := in.Peek(len(byteOrderMark)); {
	case err != nil && err != io.EOF: // the reader may say it once
		return nil, 0, err
	case string(first) == byteOrderMark:
		n, err := in.Discard(len(first))
		return in, int64(n), err
	}
	return in, 0, nil
}

// mostElapsed is the most steps, samples or nanoseconds of a row: what a run adds to it, and the difference of two, never overflow.
const mostElapsed = 1 << 62

func (r *record) check() error {
	e := r.elapsed
	for i, n := range [...]int64{e.Steps, e.Samples, r.batch, int64(e.Time)} {
		if n > mostElapsed || n < 0 && (n != unknownBatch || i != 2) {
			return fmt.Errorf("step %d: %s is %d, expected 0 to 2^62%s", e.Steps, fields[i].path(), n, [len(fields)]string{3: " nanoseconds"}[i])
		}
	}
	return nil
}

// take adds a record that was read.
func (h *History) take(r *record) error {
	if err := r.check(); err != nil {
		return err
	}
	if n := h.rows.n; n > 0 && r.batch == unknownBatch {
		if least := h.rows.at(n - 1).elapsed.Samples; r.elapsed.Samples < least { // the batch would be negative, and with it a weight
			return fmt.Errorf("elapsed.samples is %d, expected %d or more, as rows rise, or elapsed.batch", r.elapsed.Samples, least)
		}
	}
	return h.commitRecord(r)
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
		if _, err := parseColumn(c); err != nil {
			return err
		}
	}
	if !seen[stepsField] {
		return errors.New("no column " + stepsField)
	}
	return nil
}

// table is the columns of a CSV file.
type table struct {
	columns []string
	at      map[string]int
	cells   []float64 // of one line
	filled  []bool
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

// widen adds the columns that the record has and the table does not, and gives their number.
func (t *table) widen(r *record) int {
	before := len(t.columns)
	for _, c := range r.columns {
		if _, ok := t.at[c]; !ok {
			t.put(c)
		}
	}
	return len(t.columns) - before
}

func (t *table) header() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(t.columns) // a Buffer takes everything
	w.Flush()
	return b.Bytes()
}

// append writes a record as a line. No cell needs quotes.
func (t *table) append(b []byte, r *record) []byte {
	t.cells = append(t.cells[:0], make([]float64, len(t.columns))...)
	t.filled = append(t.filled[:0], make([]bool, len(t.columns))...)
	for i, c := range r.columns {
		t.cells[t.at[c]], t.filled[t.at[c]] = r.numbers[i], true
	}
	for i, c := range t.columns {
		if i > 0 {
			b = append(b, ',')
		}
		if t.filled[i] {
			b = appendNumber(b, t.cells[i])
		} else if f := fieldOf(c); f != nil {
			b = f.append(b, r.row)
		}
	}
	return append(b, '\n')
}
