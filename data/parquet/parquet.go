package parquet

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/packed"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Format describes how rows become examples. The zero Format makes one field "x", float32 [n, columns]. A stream
// keeps its slices.
type Format struct {
	Fields []Field
	// Texts reads each column into its own text field [n], as [tables.Format.Texts]. Numbers are formatted; a null or
	// NaN is "". Lists are errors. It excludes Fields.
	Texts bool
	// Limit is the maximum number of bytes of footer, pages, dictionaries, and the values of the set or a batch. A text
	// counts 16 more than its length. 0 means 56 MB plus twice the file's size, or sixteen times with Texts.
	Limit int64
}

// Field assigns columns of a file to a field.
type Field struct {
	Name string
	// Columns are names from the schema, in order. Empty means all others, except an index of pandas. A column in a
	// structure is named "outer.inner", a list by the list's name. The field is [n] for one named column, else [n,
	// columns]. A list of numbers, which must be the only column and of one length, makes [n, length].
	Columns []string
	// Dims is an example's shape for such a list; nil means [length].
	Dims []int
	// DType is named as by data.Array.DType; "" means "float32", or "int32" with Classes. Floats are rounded to
	// nearest; integers must be representable. Bools are 0 and 1. Times are the file's numbers. Texts as "uint8" are
	// lists of bytes. "string" is as in [Format].Texts.
	DType string
	// Classes are the allowed texts. The value is the index.
	Classes []string
	// Fill replaces a null, NaN or infinity. With "" they are errors.
	Fill string
}

// Read reads a file of size bytes into a set. It returns a [*data.FormatError] for an invalid file, a [*data.RowError]
// for a value, and an error that wraps [data.ErrLimit] for too much memory.
func Read(file io.ReaderAt, size int64, format Format) (*data.Set, error) {
	set, err := read(file, size, format)
	if err != nil {
		return nil, fmt.Errorf("parquet: read: %w", err)
	}
	return set, nil
}

// Open is [Read] of a file on disk.
func Open(path string, format Format) (*data.Set, error) {
	var set *data.Set
	err := packed.File(path, func(file *os.File, size int64) (err error) {
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

// Stream reads a file in batches of size examples, which may span row groups; the last may be smaller. It holds one
// batch and one page per column in memory. A small file can claim any number of rows: bound it by [data.Take].
func Stream(path string, format Format, size int) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		if size < 1 {
			yield(data.Batch{}, fmt.Errorf("parquet: stream in batches of %d: expected at least 1", size))
			return
		}
		err := packed.File(path, func(file *os.File, bytes int64) error {
			return batches(file, bytes, format, int64(size), yield)
		})
		if err != nil {
			yield(data.Batch{}, fmt.Errorf("parquet: stream: %w", err))
		}
	}
}

// Texts yields a column of texts or bytes, row by row, each in its own memory; a null is nil. It holds one page in
// memory.
func Texts(path, column string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := packed.File(path, func(file *os.File, size int64) error { return texts(file, size, column, yield) })
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
		return fmt.Errorf("column %q holds numbers or lists, expected texts", column)
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
				return nil, fmt.Errorf("fields %q and %q both name no columns; only one field can take all remaining columns", fields[rest].Name, f.Name)
			}
			rest = k
		}
		for _, name := range f.Columns {
			l := at[name]
			if l == nil {
				return nil, fmt.Errorf("field %q: there is no column %q; there are %s", f.Name, name, listed.Some(names))
			}
			taken[l] = true
			chosen[k] = append(chosen[k], l)
		}
	}
	if err := listed.Distinct(len(fields), fmt.Sprintf("of %d", len(fields)), func(i int) string { return fields[i].Name }); err != nil {
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
