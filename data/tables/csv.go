package tables

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"runtime"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/packed"
	"github.com/lazo-ml/lazo/internal/arrays"
)

// Format describes how rows of comma-separated values (RFC 4180) become examples. The zero Format expects a header
// and makes one field "x", float32 [n, columns]. Empty lines are skipped; in a file of one column those between rows
// are empty cells. [Stream] keeps its slices.
type Format struct {
	// Comma separates the cells; 0 means ','.
	Comma rune
	// NoHeader makes the first row an example. The columns are named "1", "2", ….
	NoHeader bool
	Fields   []Field
	// Texts reads each column into its own text field [n], with "" for missing cells, for a [Preparation]. It excludes
	// Fields. A column without a name has its number.
	Texts bool
	// Missing are texts of a missing cell, besides "".
	Missing []string
	// MaxRow bounds a row's bytes; 0 means 256 kB. A row has at most 65,536 columns.
	MaxRow int
	// Limit is the maximum number of bytes of values; a text counts 16 more than its length. 0 means 1 GB for [Read],
	// and for [Open] 16 MB plus four times the file's size (sixteen times with Texts). Streams have no limit.
	Limit int64
}

// Field assigns columns of a CSV file to a field.
type Field struct {
	Name string
	// Columns are names from the header, in order. Empty means all others. The field is [n] for one named column,
	// else [n, columns].
	Columns []string
	// DType is named as by [data.Array.DType]. "" means "float32", or "int32" with Classes. "string" keeps texts,
	// without surrounding spaces.
	DType string
	// Classes are the allowed texts. The value is the index.
	Classes []string
	// Fill replaces a missing cell. If "", that is an error, or "" for the dtype "string".
	Fill string
}

const (
	csvMaxRow     = 256 << 10
	csvMaxColumns = 1 << 16
	csvBlock      = 128 << 10
	csvWorkers    = 8
)

// Read reads r, plain or gzip-compressed, into a set. It returns a [*data.RowError] for invalid content, and a
// [*data.FormatError] for an invalid gzip stream.
func Read(r io.Reader, format Format) (*data.Set, error) {
	format.Limit = cmp.Or(format.Limit, 1<<30)
	set, err := readCSV(r, format)
	if err != nil {
		return nil, fmt.Errorf("tables: read csv: %w", err)
	}
	return set, nil
}

// Open is [Read] of a file.
func Open(path string, format Format) (*data.Set, error) {
	var set *data.Set
	err := packed.File(path, func(file *os.File, size int64) error {
		most := 4 * size
		if format.Texts {
			most = 16 * size
		}
		format.Limit = cmp.Or(format.Limit, most+16<<20)
		var err error
		set, err = readCSV(file, format)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tables: open csv: %w", err)
	}
	return set, nil
}

// Stream is [Read] of a file in batches of size examples; the last may be smaller. An iteration ends at the first
// error. No examples are an error.
func Stream(path string, format Format, size int) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		if size < 1 {
			yield(data.Batch{}, fmt.Errorf("tables: stream csv in batches of %d: expected at least 1", size))
			return
		}
		err := packed.File(path, func(file *os.File, _ int64) error {
			read := func(yield func(data.Batch, error) bool) {
				err := eachCSV(file, format, csvBlock, math.MaxInt64, func(b data.Batch) bool { return yield(b, nil) })
				if err != nil {
					yield(data.Batch{}, err)
				}
			}
			for b, err := range data.Rebatch(read, size, data.Kept) {
				if err != nil {
					return err
				}
				if !yield(b, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(data.Batch{}, fmt.Errorf("tables: stream csv: %w", err))
		}
	}
}

func readCSV(r io.Reader, format Format) (*data.Set, error) {
	var parts [][]data.Field
	err := eachCSV(r, format, csvBlock, format.Limit, func(b data.Batch) bool {
		parts = append(parts, b.Fields)
		return true
	})
	if err != nil {
		return nil, err
	}
	all := parts[0]
	for k := 0; k < len(all) && len(parts) > 1; k++ {
		flats, rows := make([]any, len(parts)), 0
		for i, p := range parts {
			flats[i] = p[k].Array.Flat
			rows += p[k].Array.Len()
		}
		all[k].Array.Flat = arrays.Of(flats[0]).Concat(flats)
		all[k].Array.Dims[0] = rows
	}
	return data.New(all...)
}

// eachCSV's limit is in bytes of values.
func eachCSV(r io.Reader, format Format, block int, limit int64, yield func(data.Batch) bool) error {
	file, err := openCSVFile(r, format, block)
	if err != nil {
		return err
	}
	at, taken := 0, int64(0)
	for part, err := range data.ParallelMap(file.blocks(), min(runtime.GOMAXPROCS(0), csvWorkers), file.parse) {
		if err != nil {
			return err
		}
		if taken += part.bytes; taken > limit {
			part = file.readBlock(part.block, limit-taken+part.bytes)
		}
		file.spare.Put(&part.block.text)
		if part.err != nil {
			part.err.Row += at
			return part.err
		}
		if part.n > 0 && !yield(data.Batch{Fields: part.fields, Size: part.n, At: at}) {
			return nil
		}
		at += part.n
	}
	if at == 0 {
		return errors.New("the file has no examples: it has a header, but no rows after it")
	}
	return nil
}
