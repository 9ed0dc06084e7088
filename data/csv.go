package data

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"runtime"
)

// CSV says how a file of comma-separated values (RFC 4180) becomes examples: one a row. The zero CSV has a header and
// gives one field "x", float32 [n, columns].
//
//	data.CSV{Fields: []data.CSVField{
//		{Name: "x"},
//		{Name: "y", Columns: []string{"species"}, Classes: []string{"setosa", "versicolor", "virginica"}},
//	}}
//
// An empty line is an empty cell in a file of one column, unless it stands before the header or only empty lines follow
// to the file's end. In a file of several columns empty lines are passed over.
//
// [StreamCSV] keeps the lists of its format: do not change them meanwhile.
type CSV struct {
	// Comma separates the cells; ',' if 0.
	Comma rune
	// NoHeader: the first row is an example, and the columns are named by their numbers, "1" and up.
	NoHeader bool
	// Fields are what an example has; none: "x", of all columns.
	Fields []CSVField
	// Texts, which goes without Fields, has each column as a field of its own, of texts, [n]; a missing cell is "". It is
	// what a [Preparation] is fitted on. A column without a name in the header has its number for one.
	Texts bool
	// Missing are the texts of a cell without a value, besides none at all; none means the empty cell alone.
	Missing []string
	// MaxRow is the most bytes that a row may have; 256 kB if 0. There may be 65,536 columns.
	MaxRow int
	// Limit is the most memory that the values of a [Set] may take, in bytes; if 0, four times the file, or for Texts
	// sixteen times, and 16 MB for [OpenCSV], and 1 GB for [ReadCSV]. Streams have no such limit. A text takes 16 bytes
	// more than it has.
	Limit int64
}

// CSVField is some columns of a [CSV] file.
type CSVField struct {
	Name string
	// Columns are the names in the header, in this order; none: all that no other field names, in the file's order. Of
	// one named column the field is [n], else [n, columns].
	Columns []string
	// DType is the type of the values as [Array.DType] names it; "float32" if "", and "int32" with Classes. "string" keeps
	// the cells as they are, without the spaces around them.
	DType string
	// Classes are the texts that the cells may hold; the value is the number of the text, from 0.
	Classes []string
	// Fill is the value of a missing cell, as text; "" refuses missing cells, but of the type "string", where it is "".
	Fill string
}

const (
	csvMaxRow     = 256 << 10
	csvMaxColumns = 1 << 16
	csvBlock      = 128 << 10 // bytes of the file that are read at once
	csvWorkers    = 8
)

// RowError is a row of a CSV file that cannot be read.
type RowError struct {
	// Path is the file, "" if it was read from an [io.Reader].
	Path string
	// Row is the number of the example, from 1; 0 for the header.
	Row int
	// Line and Column are where it stands in the file: the line from 1, and the name of the column, "" if it is the
	// whole row.
	Line   int
	Column string
	// Err is what is wrong. It wraps [ErrLimit] where the file is too large.
	Err error
}

func (e *RowError) Error() string {
	where := "row " + fmt.Sprint(e.Row)
	if e.Row == 0 {
		where = "header"
	}
	if e.Path != "" {
		where = e.Path + ": " + where
	}
	where += fmt.Sprintf(" (line %d)", e.Line)
	if e.Column != "" {
		where += fmt.Sprintf(", column %q", e.Column)
	}
	return fmt.Sprintf("%s: %v", where, e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }

// ReadCSV reads all rows of r, packed by gzip or not, into a set. What is wrong with the file is a [*RowError], or a
// [*FormatError] for the gzip stream.
func ReadCSV(r io.Reader, format CSV) (*Set, error) {
	format.Limit = cmp.Or(format.Limit, 1<<30)
	set, err := readCSV(r, format)
	if err != nil {
		return nil, fmt.Errorf("data: read csv: %w", err)
	}
	return set, nil
}

// OpenCSV reads a file as [ReadCSV] does. For one that does not fit into memory, see [StreamCSV].
func OpenCSV(path string, format CSV) (*Set, error) {
	var set *Set
	err := withFile(path, func(file *os.File, size int64) error {
		most := 4 * size
		if format.Texts {
			most = 16 * size // an empty cell is one byte
		}
		format.Limit = cmp.Or(format.Limit, most+16<<20)
		var err error
		set, err = readCSV(file, format)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data: open csv: %w", err)
	}
	return set, nil
}

// StreamCSV reads a file, packed by gzip or not, row by row: batches of size examples, the last one of the rest. Memory
// is that of a batch. Each iteration opens the file anew; an error is the last that comes, and a file without examples
// is one. Epoch is 0 in all.
func StreamCSV(path string, format CSV, size int) iter.Seq2[Batch, error] {
	if size < 1 {
		return failed[Batch](fmt.Errorf("data: stream csv in batches of %d: expected at least 1", size))
	}
	return func(yield func(Batch, error) bool) {
		err := withFile(path, func(file *os.File, _ int64) error {
			read := func(yield func(Batch, error) bool) {
				err := eachCSV(file, format, csvBlock, math.MaxInt64, func(b Batch) bool { return yield(b, nil) })
				if err != nil { // the rows that wait for a batch are none
					yield(Batch{}, err)
				}
			}
			for b, err := range Rebatch(read, size, Kept) {
				if err != nil {
					return err
				}
				if !yield(b.alone(), nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(Batch{}, fmt.Errorf("data: stream csv: %w", err))
		}
	}
}

func readCSV(r io.Reader, format CSV) (*Set, error) {
	var parts []Batch
	err := eachCSV(r, format, csvBlock, format.Limit, func(b Batch) bool {
		parts = append(parts, b)
		return true
	})
	if err != nil {
		return nil, err
	}
	return New(joined(parts).Fields...)
}

// eachCSV yields batches of sizes of its choice, of at most limit bytes of values in all. The file is cut into blocks
// of whole rows, of that many bytes or a row, which are read side by side.
func eachCSV(r io.Reader, format CSV, block int, limit int64, yield func(Batch) bool) error {
	file, err := openCSVFile(r, format, block)
	if err != nil {
		return err
	}
	at, taken := 0, int64(0)
	for part, err := range ParallelMap(file.blocks(), min(runtime.GOMAXPROCS(0), csvWorkers), file.parse) {
		if err != nil {
			return err
		}
		if taken += part.bytes; taken > limit { // which row was it?
			part = file.readBlock(part.block, limit-taken+part.bytes)
		}
		file.spare.Put(&part.block.text)
		if part.err != nil {
			part.err.Row += at
			return part.err
		}
		if part.n > 0 && !yield(Batch{Fields: part.fields, Size: part.n, At: at}) {
			return nil
		}
		at += part.n
	}
	if at == 0 {
		return errors.New("the file has no examples: there is a header, and no row behind it")
	}
	return nil
}
