package data

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const (
	csvBuffer     = 4096     // what package csv reads ahead
	byteOrderMark = "\ufeff" // as spreadsheets write it
)

var errBareCR = errors.New("all is one line, with bare carriage returns in it (CR): write line ends as LF or CRLF")

// rowReader gives at most MaxRow bytes (and a buffer) to a row, so that a file without line ends cannot fill the
// memory.
type rowReader struct {
	io.Reader
	left, most int
	err        error // of the source
}

func (r *rowReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("the row has more than %d bytes (set CSV.MaxRow): %w", r.most, ErrLimit)
	}
	n, err := r.Reader.Read(p[:min(len(p), r.left)])
	r.left -= n
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// csvRows is a CSV file with its columns sorted out.
type csvRows struct {
	source  *rowReader
	csv     *csv.Reader
	names   []string // of all columns
	columns []csvColumn
	width   int64 // bytes of an example, and those of its texts
	texts   int64
	missing map[string]bool
	ahead   []string // a row that was read and not yet taken
	begins  int      // the line of the row that was read last
	behind  int      // the line after the row before
	row     int
	line    int // of the row before
}

func openRows(r io.Reader, format CSV) (*csvRows, error) {
	most := cmp.Or(min(format.MaxRow, math.MaxInt-csvBuffer), csvMaxRow)
	comma := cmp.Or(format.Comma, ',')
	if most < 0 || comma == '"' || comma == '\n' || comma == '\r' || comma == 0xFFFD {
		return nil, fmt.Errorf("the format has Comma %q and MaxRow %d: expected a separator that is no quote or line end, and no negative length", comma, format.MaxRow)
	}
	u, err := unpacked(r)
	if err != nil {
		return nil, err
	}
	text := bufio.NewReader(u)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = text.Discard(len(mark))
	}
	source := &rowReader{Reader: text, most: most, left: most + csvBuffer}
	rows := &csvRows{source: source, csv: csv.NewReader(source), missing: map[string]bool{"": true}}
	rows.csv.Comma, rows.csv.ReuseRecord = comma, true
	for _, m := range format.Missing {
		rows.missing[m] = true
	}
	first, err := rows.read()
	if err == io.EOF {
		return nil, rows.fail("", errors.New("the file is empty"))
	}
	if err != nil {
		return nil, err
	}
	if len(first) > csvMaxColumns {
		return nil, rows.fail("", fmt.Errorf("%d columns, expected at most %d: %w", len(first), csvMaxColumns, ErrLimit))
	}
	for i, name := range first {
		if format.NoHeader {
			name = fmt.Sprint(i + 1)
		}
		if name = strings.TrimSpace(name); name == "" && format.Texts {
			name = fmt.Sprint(i + 1)
		}
		rows.names = append(rows.names, strings.Clone(name))
	}
	rows.line = rows.begins
	if format.NoHeader {
		rows.ahead, rows.behind = first, 1
	} else {
		rows.pass(first)
		if slices.ContainsFunc(rows.names, func(name string) bool { return strings.Contains(name, "\r") }) {
			switch rows.ahead, err = rows.read(); {
			case err == io.EOF:
				return nil, rows.fail("", errBareCR)
			case err != nil:
				return nil, err
			}
		}
	}
	if format.Texts {
		if len(format.Fields) > 0 {
			return nil, errors.New("the format has both Texts and Fields, expected one of them: a field of texts has the DType \"string\"")
		}
		format.Fields = nil
		for _, name := range rows.names {
			format.Fields = append(format.Fields, CSVField{Name: name, Columns: []string{name}, DType: "string"})
		}
	}
	if rows.columns, err = chooseColumns(rows.names, format.Fields, comma); err != nil {
		return nil, rows.fail("", err)
	}
	for _, c := range rows.columns {
		rows.width += c.width()
	}
	return rows, nil
}

// next is a row's cells; io.EOF behind the last.
func (r *csvRows) next() (cells []string, err error) {
	if r.ahead == nil {
		if r.ahead, err = r.read(); err != nil {
			return nil, err
		}
	}
	r.row++
	// Package csv passes over empty lines, but in a file of one column they are empty cells: without them the values
	// would no longer stand beside those of other files. None comes here for lines at the file's end, which no row
	// follows.
	if len(r.names) == 1 && r.behind < r.begins {
		r.line = r.behind
		r.behind++
		return []string{""}, nil
	}
	cells, r.ahead, r.line = r.ahead, nil, r.begins
	r.pass(cells)
	return cells, nil
}

// pass sets the line behind the row that was read last. Quoted cells span lines; only the only cell of a row is looked
// at, because no other file needs to know.
func (r *csvRows) pass(cells []string) {
	if len(cells) == 1 {
		r.behind = r.begins + 1 + strings.Count(cells[0], "\n")
	}
}

func (r *csvRows) read() ([]string, error) {
	r.source.left = r.source.most + csvBuffer
	cells, err := r.csv.Read()
	if source := r.source.err; source != nil {
		return nil, readError(r.csv.InputOffset(), "in the rows", source)
	}
	if err == io.EOF {
		return nil, err
	}
	if err == nil {
		r.begins, _ = r.csv.FieldPos(0)
		return cells, nil
	}
	row, line := r.row+1, r.line+1
	if r.names == nil {
		row = 0
	}
	if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
		line = parse.StartLine
		if len(r.names) == 1 {
			row += max(line-r.behind, 0) // the empty lines before it are examples
		}
		if err = parse.Err; errors.Is(err, csv.ErrFieldCount) {
			err = fmt.Errorf("%d cells, expected %d as in the first row", len(cells), len(r.names))
		}
	}
	return nil, &RowError{Row: row, Line: line, Err: err}
}

func (r *csvRows) fail(column string, err error) error {
	return &RowError{Row: r.row, Line: max(r.line, 1), Column: column, Err: err}
}

// take puts a row's values behind those that are there.
func (r *csvRows) take(cells []string) error {
	r.texts = 0
	for k := range r.columns {
		c := &r.columns[k]
		_, text := c.values.(*csvSlice[string])
		for _, i := range c.at {
			cell := strings.TrimSpace(cells[i])
			if r.missing[cell] {
				if c.Fill == "" && !text {
					return r.fail(r.names[i], fmt.Errorf("the cell %q is missing a value; set CSVField.Fill to take a value for it, or leave the column out", cell))
				}
				cell = c.Fill
			}
			if text {
				r.texts += int64(len(cell))
			}
			if err := c.values.add(cell); err != nil {
				if c.Classes == nil { // the error of Classes lists them
					err = fmt.Errorf("%w%s", err, advice(cell, r.csv.Comma))
				}
				return r.fail(r.names[i], err)
			}
		}
	}
	return nil
}

// fields are the n rows taken since the last call.
func (r *csvRows) fields(n int) []Field {
	fields := make([]Field, len(r.columns))
	for k, c := range r.columns {
		dims := []int{n}
		if !c.single {
			dims = append(dims, len(c.at))
		}
		fields[k] = Named(c.Name, c.values.flat(), dims...)
	}
	return fields
}
