package parquet

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/distinct"
)

// Format says how a file becomes examples: one a row. The zero Format gives one field "x", float32 [n, columns], as
// [data.CSV] does.
//
//	parquet.Format{Fields: []parquet.Field{
//		{Name: "x", Columns: []string{"pixels"}, Dims: []int{28, 28, 1}},
//		{Name: "y", Columns: []string{"species"}, Classes: []string{"setosa", "versicolor", "virginica"}},
//	}}
//
// A stream keeps the lists of its format: do not change them meanwhile.
type Format struct {
	// Fields are what an example has; none: "x", of all columns.
	Fields []Field
	// Texts, which goes without Fields, has each column as a field of its own, of texts, [n], as [data.CSV.Texts]:
	// numbers are written out, a null or NaN is "". It is what a [data.Preparation] is fitted on. A column of lists is an
	// error.
	Texts bool
	// Limit is the most memory that reading may take, in bytes: footer, pages, dictionaries, and the values of the set
	// or of one batch. If 0, twice the file, or for Texts sixteen times, and 56 MB. A column packed tighter than that
	// needs a limit of its own. A text takes 16 bytes more than it has.
	Limit int64
}

// Field is some columns of a file.
type Field struct {
	Name string
	// Columns are the names of columns in the schema, in this order; none: all that no other field names, in the file's
	// order, but for an index of pandas, which is no column of its table and must be named. A column in a structure is
	// called "outer.inner", a list by the name of the list. Of one named column the field is [n], else [n, columns]. A
	// list of numbers gives [n, length] and must be the field's only column, with as many numbers in each row as in the
	// first.
	Columns []string
	// Dims is the shape of an example of such a list, nil for [length].
	Dims []int
	// DType is the type of the values as data.Array.DType names it; "float32" if "", and "int32" with Classes. Numbers
	// are converted: a float to the nearest, an integer only if it is the same. Truth values are 0 and 1, times their
	// numbers in the file. Texts with the type "uint8" are lists of their bytes; with the type "string" they are texts,
	// numbers and truth values are written out, and a null or NaN is "".
	DType string
	// Classes are the texts that the column may hold; the value is the number of the text, from 0.
	Classes []string
	// Fill is the value for a null, a NaN or an infinite value, as text; "" refuses them.
	Fill string
}

// RowError is a value that cannot be taken as the format says.
type RowError struct {
	// Path is the file, "" if it was read from an [io.ReaderAt].
	Path string
	// Row is the number of the example, from 1.
	Row    int64
	Column string
	// Err is what is wrong.
	Err error
}

func (e *RowError) Error() string {
	where := fmt.Sprintf("row %d, column %q: %v", e.Row, e.Column, e.Err)
	if e.Path != "" {
		where = e.Path + ": " + where
	}
	return where
}

func (e *RowError) Unwrap() error { return e.Err }

// Read reads all rows of a file of size bytes into a set. What is wrong with the file is a [*data.FormatError], with
// one of its values a [*RowError]; what takes too much memory wraps [data.ErrLimit].
func Read(file io.ReaderAt, size int64, format Format) (*data.Set, error) {
	set, err := read(file, size, format)
	if err != nil {
		return nil, fmt.Errorf("parquet: read: %w", err)
	}
	return set, nil
}

// Open reads a file as [Read] does. For one that does not fit into memory, see [Stream].
func Open(path string, format Format) (*data.Set, error) {
	var set *data.Set
	err := withFile(path, func(file *os.File, size int64) (err error) {
		set, err = read(file, size, format)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("parquet: open: %w", err)
	}
	return set, nil
}

func read(file io.ReaderAt, size int64, format Format) (set *data.Set, err error) {
	var made error
	err = batches(file, size, format, 0, func(b data.Batch, _ error) bool {
		set, made = data.New(b.Fields...)
		return true
	})
	return set, errors.Join(err, made)
}

// Stream reads a file in batches of size examples, the last one of the rest; a batch may cross the border of row
// groups. Memory is that of a batch and of a page of each column. Each iteration opens the file anew; an error is the
// last that comes. Epoch is 0 in all.
//
// A few bytes can stand for any number of equal rows, so a stream is as long as the file says; [data.Take] bounds it.
func Stream(path string, format Format, size int) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		if size < 1 {
			yield(data.Batch{}, fmt.Errorf("parquet: stream in batches of %d: expected at least 1", size))
			return
		}
		err := withFile(path, func(file *os.File, bytes int64) error {
			return batches(file, bytes, format, int64(size), yield)
		})
		if err != nil {
			yield(data.Batch{}, fmt.Errorf("parquet: stream: %w", err))
		}
	}
}

// Texts reads a column of texts or bytes, row by row, as for a tokenizer with [data.Map]. Each is memory of its own, a
// null is nil. Memory is that of a page. Each iteration opens the file anew; an error is the last that comes.
func Texts(path, column string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := withFile(path, func(file *os.File, size int64) error { return texts(file, size, column, yield) })
		if err != nil {
			yield(nil, fmt.Errorf("parquet: texts: %w", err))
		}
	}
}

func texts(file io.ReaderAt, size int64, column string, yield func([]byte, error) bool) error {
	r, err := openRows(file, size, Format{Fields: []Field{{Name: column, Columns: []string{column}, DType: "uint8"}}})
	if err != nil {
		return err
	}
	defer r.close()
	c := r.cursors[0]
	if c.leaf.repeats > 0 || c.leaf.typ != typeBytes && c.leaf.typ != typeFixed {
		return fmt.Errorf("column %q holds no texts, but numbers or lists", column)
	}
	for {
		more, err := r.more()
		if err != nil || !more {
			return err
		}
		if more, err = c.peek(); err != nil || !more {
			return r.short(c, err)
		}
		var one []byte
		if c.d == c.leaf.maxDef {
			one = append([]byte{}, c.value.text...)
		}
		c.loaded = false
		r.row++
		r.left--
		if !yield(one, nil) {
			return nil
		}
	}
}

// withFile opens a regular file for f, and puts the path into its errors.
func withFile(path string, f func(file *os.File, size int64) error) error {
	info, err := os.Stat(path) // before opening, which would wait for the writer of a named pipe
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file (%v)", path, info.Mode().Type())
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	err = f(file, info.Size())
	format, row := (*data.FormatError)(nil), (*RowError)(nil)
	switch {
	case errors.As(err, &format):
		format.Path = path
	case errors.As(err, &row):
		row.Path = path
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// choose finds the columns of each field by their names.
func choose(leaves []leaf, fields []Field) ([][]*leaf, error) {
	if len(leaves) == 0 {
		return nil, errors.New("the file has no columns")
	}
	at := make(map[string]*leaf, len(leaves))
	names := make([]string, len(leaves))
	for i := range leaves {
		l := &leaves[i]
		names[i] = l.name
		if at[l.name] != nil {
			return nil, fmt.Errorf("two columns have the name %q", l.name)
		}
		at[l.name] = l
	}
	chosen := make([][]*leaf, len(fields))
	taken := make(map[*leaf]bool)
	rest := -1
	for k, f := range fields {
		if f.Name == "" {
			return nil, fmt.Errorf("field %d of %d has no name", k+1, len(fields))
		}
		if len(f.Columns) == 0 {
			if rest >= 0 {
				return nil, fmt.Errorf("fields %q and %q both name no columns; one field may have the rest", fields[rest].Name, f.Name)
			}
			rest = k
		}
		for _, name := range f.Columns {
			l := at[name]
			if l == nil {
				return nil, fmt.Errorf("field %q: there is no column %q; there are %s", f.Name, name, some(names))
			}
			taken[l] = true
			chosen[k] = append(chosen[k], l)
		}
	}
	if err := distinct.Names(len(fields), fmt.Sprintf("of %d", len(fields)), func(i int) string { return fields[i].Name }); err != nil {
		return nil, err
	}
	if rest >= 0 {
		for i := range leaves {
			if l := &leaves[i]; !taken[l] && !l.pandas {
				chosen[rest] = append(chosen[rest], l)
			}
		}
		if chosen[rest] == nil {
			return nil, fmt.Errorf("field %q: the other fields name all columns", fields[rest].Name)
		}
	}
	return chosen, nil
}
