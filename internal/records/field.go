package records

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const Collection = "elapsed"

var ErrName = errors.New("malformed name")

// Field is part of [Elapsed], as number and text.
type Field struct {
	Name   string
	Number func(at Elapsed) float64
	append func(b []byte, at Elapsed) []byte
	parse  func(at *Elapsed, text string) error
}

const (
	// required in each row
	stepsField = "elapsed.steps"
	// epochsField is omitted until a row has completed an epoch.
	epochsField = "epochs"
)

var Fields = [...]Field{
	integer("steps", func(at *Elapsed) *int64 { return &at.Steps }),
	integer("samples", func(at *Elapsed) *int64 { return &at.Samples }),
	integer("batch", func(at *Elapsed) *int64 { return &at.Batch }),
	{"time", func(at Elapsed) float64 { return at.Time.Seconds() }, appendSeconds, parseSeconds},
	{"date", unixSeconds, appendDate, parseDate},
	integer(epochsField, func(at *Elapsed) *int64 { return &at.Epochs }),
}

// omitted if it equals the position in the file; a history does not look it up
var rowField = integer("row", func(at *Elapsed) *int64 { return &at.Row })

var ofFiles = append(Fields[:len(Fields):len(Fields)], rowField)

func (f Field) Path() string { return Collection + "." + f.Name }

var byPath = func() map[string]*Field {
	all := map[string]*Field{}
	for i := range ofFiles {
		all[ofFiles[i].Path()] = &ofFiles[i]
	}
	return all
}()

func fieldOf(path string) *Field { return byPath[path] }

func integer(name string, of func(*Elapsed) *int64) Field {
	return Field{
		Name:   name,
		Number: func(at Elapsed) float64 { return float64(*of(&at)) },
		append: func(b []byte, at Elapsed) []byte {
			if at.Batch == UnknownBatch && of(&at) == &at.Batch || at.Row == 0 && of(&at) == &at.Row {
				return b
			}
			return strconv.AppendInt(b, *of(&at), 10)
		},
		parse: func(at *Elapsed, text string) (err error) {
			*of(at), err = parseInteger(text)
			return err
		},
	}
}

func parseInteger(text string) (int64, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("want an integer of 64 bits, got %.40q", text)
	}
	return v, nil
}

func appendSeconds(b []byte, at Elapsed) []byte {
	ns := uint64(at.Time)
	if at.Time < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendUint(b, ns/1e9, 10)
	if ns %= 1e9; ns > 0 {
		b = append(b, strings.TrimRight(fmt.Sprintf(".%09d", ns), "0")...)
	}
	return b
}

func parseSeconds(at *Elapsed, text string) error {
	d, err := time.ParseDuration(text + "s")
	if err != nil || strings.Trim(text, "-.0123456789") != "" {
		return fmt.Errorf("want seconds as 12.345, got %.40q", text)
	}
	at.Time = d
	return nil
}

func unixSeconds(at Elapsed) float64 {
	if at.Date == 0 {
		return math.NaN()
	}
	return float64(at.Date/1e9) + float64(at.Date%1e9)/1e9 // in two parts, to round once
}

func appendDate(b []byte, at Elapsed) []byte {
	if at.Date == 0 {
		return b
	}
	return time.Unix(0, at.Date).UTC().AppendFormat(b, time.RFC3339Nano)
}

func parseDate(at *Elapsed, text string) error {
	t, err := time.Parse(time.RFC3339Nano, text)
	date := t.UnixNano()
	if err != nil || !time.Unix(0, date).Equal(t) {
		return fmt.Errorf("want a date as %s, of the years 1678 to 2261, got %.40q", time.RFC3339, text)
	}
	at.Date = date
	return nil
}

// exact, except that all NaN are equal
func appendNumber(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 0):
		return append(b, strings.Repeat("-", int((1-math.Copysign(1, v))/2))+"Infinity"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func parseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("want a number of 64 bits, got %.40q", text)
	}
	return v, nil
}

// SplitColumn splits a column's name. The error wraps ErrName.
func SplitColumn(column string) (collection, name string, err error) {
	collection, name, _ = strings.Cut(column, ".")
	switch {
	case collection == "" || name == "":
		err = fmt.Errorf("%w: column %q, want collection.name", ErrName, column)
	case collection == Collection:
		err = fmt.Errorf("%w: column %q, there is no such part of the elapsed time", ErrName, column)
	case !utf8.ValidString(column) || strings.ContainsFunc(column, unicode.IsControl):
		err = fmt.Errorf("%w: column %q has control characters or is not UTF-8", ErrName, column)
	}
	return collection, name, err
}

// Column returns collection.name. Errors are those of SplitColumn.
func Column(collection, name string) (string, error) {
	column := collection + "." + name
	before, _, err := SplitColumn(column)
	if err == nil && before != collection {
		err = fmt.Errorf("%w: the collection %q has a dot", ErrName, collection)
	}
	return column, err
}
