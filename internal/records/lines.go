package records

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
)

type Lines interface {
	// Read returns a line's steps. isRow is false for a header.
	Read(line []byte) (steps int64, isRow bool, err error)
	Start() string
	// Forget drops an old file's header: no rows remain.
	Forget()
	// Widen returns a new header if the row needs one, and what to append to other lines.
	Widen(r *Row) (header, behind []byte)
	Append(b []byte, r *Row) []byte
}

func JSONLines() Lines { return jsonLines{} }

// CSVLines has a header and a line of numbers per row, without the batch.
func CSVLines() Lines { return &csvLines{} }

type jsonLines struct{}

func (jsonLines) Read(line []byte) (steps int64, isRow bool, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	rows, err := readJSON(d, func(r *Row) error { steps = r.Steps; return nil })
	if err == nil && (rows != 1 || line[0] != '{') {
		err = fmt.Errorf("want one object, got %.40q", line)
	}
	return steps, true, err
}

func (jsonLines) Start() string { return `{"` + stepsField + `":` }

func (jsonLines) Forget() {}

func (jsonLines) Widen(*Row) (header, behind []byte) { return nil, nil }

func (jsonLines) Append(b []byte, r *Row) []byte { return append(appendJSON(b, r), '\n') }

type csvLines struct{ table *table }

func (l *csvLines) Read(line []byte) (steps int64, isRow bool, err error) {
	if l.table == nil {
		columns, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err == nil {
			err = checkColumns(columns)
		}
		if err != nil {
			return 0, false, err
		}
		l.table = tableOf(columns)
		return 0, false, nil
	}
	cells := bytes.Split(line, []byte(",")) // without quotes
	if len(cells) != len(l.table.columns) {
		return 0, false, fmt.Errorf("want %d cells, got %d", len(l.table.columns), len(cells))
	}
	steps, err = parseInteger(string(cells[l.table.at[stepsField]]))
	return steps, true, err
}

func (l *csvLines) Start() string { return stepsField }

func (l *csvLines) Forget() { l.table = nil }

func (l *csvLines) Widen(r *Row) (header, behind []byte) {
	if l.table == nil {
		l.table = tableOfFields("batch") // unknown to a callback
		l.table.widen(r)
		return l.table.header(), nil
	}
	n := l.table.widen(r)
	if n == 0 {
		return nil, nil
	}
	return l.table.header(), bytes.Repeat([]byte(","), n)
}

func (l *csvLines) Append(b []byte, r *Row) []byte { return l.table.append(b, r) }
