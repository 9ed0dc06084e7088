package loop

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const elapsedCollection Collection = "elapsed"

// field is a part of a row's time: how it is read as a number, and how it stands in a file.
type field struct {
	name   string
	number func(r row) float64
	append func(b []byte, r row) []byte // nothing where it is not known
	parse  func(r *row, text string) error
}

// stepsField is the one that a row of a file must have.
const stepsField = "elapsed.steps"

var fields = [...]field{
	integer("steps", func(r *row) *int64 { return &r.elapsed.Steps }),
	integer("samples", func(r *row) *int64 { return &r.elapsed.Samples }),
	integer("batch", func(r *row) *int64 { return &r.batch }),
	{"time", func(r row) float64 { return r.elapsed.Time.Seconds() }, appendSeconds, parseSeconds},
	{"date", unixSeconds, appendDate, parseDate},
}

func (f field) path() string { return string(elapsedCollection) + "." + f.name }

// fieldOf finds the field with a full name, nil if there is none.
func fieldOf(path string) *field {
	for i := range fields {
		if fields[i].path() == path {
			return &fields[i]
		}
	}
	return nil
}

func integer(name string, of func(*row) *int64) field {
	return field{
		name:   name,
		number: func(r row) float64 { return float64(*of(&r)) },
		append: func(b []byte, r row) []byte {
			if r.batch == unknownBatch && of(&r) == &r.batch {
				return b
			}
			return strconv.AppendInt(b, *of(&r), 10)
		},
		parse: func(r *row, text string) (err error) {
			*of(r), err = parseInteger(text)
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

// appendSeconds writes nanoseconds as seconds without loss, which a float would not.
func appendSeconds(b []byte, r row) []byte {
	ns := uint64(r.elapsed.Time)
	if r.elapsed.Time < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendUint(b, ns/1e9, 10)
	if ns %= 1e9; ns > 0 {
		b = append(b, strings.TrimRight(fmt.Sprintf(".%09d", ns), "0")...)
	}
	return b
}

func parseSeconds(r *row, text string) error {
	d, err := time.ParseDuration(text + "s")
	if err != nil || strings.Trim(text, "-.0123456789") != "" {
		return fmt.Errorf("want seconds as 12.345, got %.40q", text)
	}
	r.elapsed.Time = d
	return nil
}

func unixSeconds(r row) float64 {
	if r.elapsed.Date == 0 {
		return math.NaN()
	}
	return float64(r.elapsed.Date/1e9) + float64(r.elapsed.Date%1e9)/1e9 // apart, to round once
}

func appendDate(b []byte, r row) []byte {
	if r.elapsed.Date == 0 {
		return b
	}
	return r.elapsed.Date.Time().AppendFormat(b, time.RFC3339Nano)
}

func parseDate(r *row, text string) error {
	t, err := time.Parse(time.RFC3339Nano, text)
	date := Date(t.UnixNano())
	if err != nil || !date.Time().Equal(t) {
		return fmt.Errorf("want a date as %s, of the years 1678 to 2261, got %.40q", time.RFC3339, text)
	}
	r.elapsed.Date = date
	return nil
}

// appendNumber writes a number so that it is read again to the last bit; all NaN are one.
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

// parseColumn takes a column's name apart, and refuses what a file could not give back as it was.
func parseColumn(column string) (place, error) {
	collection, name, _ := strings.Cut(column, ".")
	switch {
	case collection == "" || name == "":
		return place{}, fmt.Errorf("%w: column %q, want collection.name", ErrName, column)
	case Collection(collection) == elapsedCollection:
		return place{}, fmt.Errorf("%w: column %q, there is no such part of the elapsed time", ErrName, column)
	case !utf8.ValidString(column) || strings.ContainsFunc(column, unicode.IsControl):
		return place{}, fmt.Errorf("%w: column %q has control characters or is not UTF-8", ErrName, column)
	}
	return place{Collection(collection), name}, nil
}

// columnName is the inverse of parseColumn.
func columnName(p place) (string, error) {
	column := string(p.collection) + "." + p.name
	back, err := parseColumn(column)
	if err == nil && back != p {
		err = fmt.Errorf("%w: the collection %q has a dot", ErrName, p.collection)
	}
	return column, err
}
