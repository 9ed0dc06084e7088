package parquet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
)

// A Parquet file is PAR1, the pages, the footer (Thrift), its length (32 bits, little-endian) and PAR1.
const (
	fileTail    = 8
	fileLeast   = 12
	mostColumns = 1 << 16
	mostDepth   = 64
	elementSize = 80
	leafSize    = 144
)

const (
	typeBool = iota
	typeInt32
	typeInt64
	typeInt96
	typeFloat
	typeDouble
	typeBytes
	typeFixed
)

type leaf struct {
	name     string
	path     string // name, and what follows it
	index    int
	typ      int
	length   int // of typeFixed, in bytes
	unsigned bool
	repeats  int // levels of lists
	maxDef   int
	listDef  int  // definition level of an element
	pandas   bool // an index of pandas
	err      error
}

type element struct {
	name       []byte
	typ        int
	length     int
	repetition int
	children   int
	unsigned   bool
	decimal    bool
	half       bool
}

type footer struct {
	leaves []leaf
	rows   int64
	groups thrift
	count  int
	end    int64
}

func readFooter(file io.ReaderAt, size int64, mem *memory) (*footer, error) {
	if size < fileLeast {
		return nil, damaged(size, "not a Parquet file: it has %d bytes: %w", size, io.ErrUnexpectedEOF)
	}
	var head [4]byte
	var tail [fileTail]byte
	if err := readAt(file, head[:], 0); err != nil {
		return nil, err
	}
	if err := readAt(file, tail[:], size-fileTail); err != nil {
		return nil, err
	}
	if string(tail[4:]) == "PARE" {
		return nil, damaged(size-4, "the file is encrypted, which is not supported")
	}
	if string(head[:]) != "PAR1" || string(tail[4:]) != "PAR1" {
		return nil, damaged(0, "not a Parquet file: it begins with %q and ends with %q, expected PAR1: the file is truncated or has another format", head, tail[4:])
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length > size-fileLeast {
		return nil, damaged(size-fileTail, "the footer has %d bytes, the file %d: %w", length, size, io.ErrUnexpectedEOF)
	}
	if err := mem.take(length); err != nil {
		return nil, err
	}
	at := size - fileTail - length
	b := make([]byte, length)
	if err := readAt(file, b, at); err != nil {
		return nil, err
	}
	f := &footer{end: at}
	if err := f.parse(b, mem); err != nil {
		if errors.Is(err, data.ErrLimit) {
			return nil, err
		}
		return nil, damaged(at, "the footer: %w", err)
	}
	return f, nil
}

func (f *footer) parse(b []byte, mem *memory) error {
	t := &thrift{b: b}
	var elements []element
	found := false
	var indexes []string
	t.fields(func(id int64, kind byte) {
		switch id {
		case 2:
			n, of := t.list(kind)
			if n > 2*mostColumns {
				t.fail(fmt.Errorf("the schema has %d elements, expected at most %d: %w", n, 2*mostColumns, data.ErrLimit))
				return
			}
			if err := mem.take(int64(n) * (elementSize + leafSize)); err != nil {
				t.fail(err)
				return
			}
			elements = make([]element, 0, n)
			for ; n > 0 && t.err == nil; n-- {
				elements = append(elements, schemaElement(t, of))
			}
		case 3:
			f.rows = t.int(kind)
		case 4:
			n, of := t.list(kind)
			if n > 0 && of != thriftStruct {
				t.fail(fmt.Errorf("the row groups have kind %d, expected structures", of))
			}
			f.groups, f.count, found = *t, n, true
			t.skipElements(n, of)
		case 5:
			for n, of := t.list(kind); n > 0 && t.err == nil; n-- {
				if err := noteOf(t, of, mem, &indexes); err != nil {
					t.fail(err)
				}
			}
		}
	})
	if t.err != nil {
		return t.err
	}
	if !found || len(elements) == 0 {
		return errors.New("there is no schema, or no list of row groups")
	}
	f.leaves = make([]leaf, 0, min(len(elements), mostColumns))
	if err := f.schema(elements, mem); err != nil {
		return err
	}
	for i := range f.leaves {
		f.leaves[i].pandas = slices.Contains(indexes, f.leaves[i].name)
	}
	rows := int64(0)
	groups := f.groups
	for range f.count {
		n := int64(0)
		groups.fields(func(id int64, kind byte) {
			if id == 3 {
				n = groups.int(kind)
			}
		})
		if n < 0 || n > f.rows-rows {
			return fmt.Errorf("a row group has %d rows, after %d of the file's %d", n, rows, f.rows)
		}
		rows += n
	}
	if rows != f.rows {
		return fmt.Errorf("the row groups have %d rows, the file %d", rows, f.rows)
	}
	return nil
}

func noteOf(t *thrift, kind byte, mem *memory, indexes *[]string) error {
	var key, value []byte
	t.structure(kind, func(id int64, kind byte) {
		switch id {
		case 1:
			key = t.bytes(kind)
		case 2:
			value = t.bytes(kind)
		}
	})
	if t.err != nil || string(key) != "pandas" {
		return t.err
	}
	if err := mem.take(2 * int64(len(value))); err != nil {
		return err
	}
	var note struct {
		Indexes []any `json:"index_columns"` // names, or descriptions of a range
	}
	if err := json.Unmarshal(value, &note); err != nil {
		return fmt.Errorf("the note of pandas: %w", err)
	}
	for _, x := range note.Indexes {
		if name, ok := x.(string); ok {
			*indexes = append(*indexes, name)
		}
	}
	return nil
}

func schemaElement(t *thrift, kind byte) element {
	e := element{typ: -1}
	t.structure(kind, func(id int64, kind byte) {
		switch id {
		case 1:
			e.typ = small(t, kind)
		case 2:
			e.length = small(t, kind)
		case 3:
			e.repetition = small(t, kind)
		case 4:
			e.name = t.bytes(kind)
		case 5:
			e.children = small(t, kind)
		case 6: // ConvertedType: 5 is a decimal, 11 to 14 are unsigned
			c := small(t, kind)
			e.unsigned = e.unsigned || c >= 11 && c <= 14
			e.decimal = e.decimal || c == 5
		case 10:
			t.structure(kind, func(id int64, kind byte) {
				e.decimal = e.decimal || id == 5
				e.half = e.half || id == 15
				if id != 10 {
					return
				}
				t.structure(kind, func(id int64, kind byte) {
					if id == 2 {
						e.unsigned = !t.bool(kind)
					}
				})
			})
		}
	})
	return e
}

func small(t *thrift, kind byte) int {
	v := t.int(kind)
	if v < 0 || v > 1<<31-1 {
		t.fail(fmt.Errorf("the header has the number %d, expected 0 to 2147483647", v))
		return 0
	}
	return int(v)
}

// schema's elements are in pre-order.
func (f *footer) schema(elements []element, mem *memory) error {
	at := 0
	var walk func(path []string, named, repeats, def, listDef int) error
	walk = func(path []string, named, repeats, def, listDef int) error {
		if at == len(elements) || len(path) > mostDepth {
			return fmt.Errorf("the schema's tree of %d elements has more children than elements, or is more than %d deep", len(elements), mostDepth)
		}
		e := elements[at]
		root := at == 0
		at++
		if !root {
			path = append(path, string(e.name))
			switch e.repetition {
			case 0:
			case 1:
				def++
			case 2:
				if repeats == 0 { // data frames name a list by the node above the repeated one
					named = max(1, len(path)-1)
				}
				def++
				repeats++
				listDef = def
			default:
				return fmt.Errorf("element %d of the schema has the repetition %d, expected 0 to 2", at, e.repetition)
			}
		}
		if e.children > 0 || root {
			if repeats > 0 && e.children > 1 {
				named = 0 // several columns would have it
			}
			for range e.children {
				if err := walk(path[:len(path):len(path)], named, repeats, def, listDef); err != nil {
					return err
				}
			}
			return nil
		}
		bytes := int64(0)
		for _, p := range path {
			bytes += int64(len(p)) + 1
		}
		if err := mem.take(2 * bytes); err != nil { // one name per depth makes long paths from a short file
			return err
		}
		l := leaf{path: strings.Join(path, "."), index: len(f.leaves), typ: e.typ, length: e.length, unsigned: e.unsigned, repeats: repeats, maxDef: def, listDef: listDef}
		l.name = l.path
		if repeats > 0 && named > 0 {
			l.name = strings.Join(path[:named], ".")
		}
		switch {
		case e.typ < typeBool || e.typ > typeFixed:
			return fmt.Errorf("column %q has the type %d, expected 0 to 7", l.path, e.typ)
		case e.typ == typeFixed && e.length == 0:
			return fmt.Errorf("column %q has values of 0 bytes", l.path)
		case e.typ == typeInt96:
			l.err = errors.New("it has times of 96 bits, which are not supported; write them as 64 bits")
		case e.decimal:
			l.err = errors.New("it has decimals, which are not supported; write them as doubles")
		case e.half:
			l.err = errors.New("it has floats of 16 bits, which are not supported; write them as floats of 32")
		case repeats > 1:
			l.err = errors.New("it has lists of lists, which are not supported; write flat ones, and set Field.Dims")
		}
		if len(f.leaves) == mostColumns {
			return fmt.Errorf("there are more than %d columns: %w", mostColumns, data.ErrLimit)
		}
		f.leaves = append(f.leaves, l)
		return nil
	}
	if err := walk(nil, 0, 0, 0, 0); err != nil {
		return err
	}
	if at != len(elements) {
		return fmt.Errorf("the schema's tree ends after %d of %d elements", at, len(elements))
	}
	return nil
}

func damaged(offset int64, format string, args ...any) error {
	return &data.FormatError{Offset: offset, Err: fmt.Errorf(format, args...)}
}

// readAt distinguishes a truncated file from an unreadable one.
func readAt(file io.ReaderAt, b []byte, at int64) error {
	n, err := file.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF || err == nil:
		return damaged(at+int64(n), "the file ends too early: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("byte %d: %w", at, err)
}
