package records

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
)

// Lines is how rows stand in a file, one a line, that several runs write one after the other.
type Lines interface {
	// Read looks at a line of an old file and gives its steps; isRow is false for a line of column names.
	Read(line []byte) (steps int64, isRow bool, err error)
	// Start is how the first line begins.
	Start() string
	// Forget forgets an old file of which no row is left.
	Forget()
	// Widen gives a new first line if the row needs one, and what is then to be put behind each other line.
	Widen(r *Row) (header, behind []byte)
	// Append writes the row as a line.
	Append(b []byte, r *Row) []byte
}

// JSONLines is one object a line.
func JSONLines() Lines { return jsonLines{} }

// CSVLines is a line of column names, and one of numbers for each row. There is no column for the batch.
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
	cells := bytes.Split(line, []byte(",")) // lazo puts no quotes around numbers
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
		l.table = tableOfFields("batch") // which a callback does not know
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
