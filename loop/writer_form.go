package loop

import (
	"bytes"
	"encoding/csv"
	"fmt"
)

// jsonLines is one object a line.
type jsonLines struct{}

func (jsonLines) read(line []byte) (int64, bool, error) {
	var r record
	if err := readJSONLine(line, &r); err != nil {
		return 0, false, err
	}
	return r.elapsed.Steps, true, nil
}

func (jsonLines) start() string { return `{"` + stepsField + `":` }

func (jsonLines) anew() {}

func (jsonLines) widen(*record) (header, behind []byte) { return nil, nil }

func (jsonLines) append(b []byte, r *record) []byte { return append(appendJSON(b, r), '\n') }

// csvLines is a line of column names, and one of numbers for each record.
type csvLines struct{ table *table }

func (l *csvLines) read(line []byte) (steps int64, ok bool, err error) {
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
	cells := bytes.Split(line, []byte(",")) // lazo puts no quotes around numbers
	if len(cells) != len(l.table.columns) {
		return 0, false, fmt.Errorf("want %d cells, got %d", len(l.table.columns), len(cells))
	}
	steps, err = parseInteger(string(cells[l.table.at[stepsField]]))
	return steps, true, err
}

func (l *csvLines) start() string { return stepsField }

func (l *csvLines) anew() { l.table = nil }

func (l *csvLines) widen(r *record) (header, behind []byte) {
	if l.table == nil {
		var columns []string
		for _, f := range fields {
			if f.name != "batch" { // a callback does not know it
				columns = append(columns, f.path())
			}
		}
		l.table = tableOf(columns)
		l.table.widen(r)
		return l.table.header(), nil
	}
	n := l.table.widen(r)
	if n == 0 {
		return nil, nil
	}
	return l.table.header(), bytes.Repeat([]byte(","), n)
}

func (l *csvLines) append(b []byte, r *record) []byte { return l.table.append(b, r) }
