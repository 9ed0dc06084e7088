package tables

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
)

var errNotUTF8 = errors.New("its bytes are not UTF-8: convert the file, for example by iconv -f latin1 -t utf-8")

type csvColumn struct {
	Field
	at     []int
	single bool
	values csvValues
	// No text of Missing is valid: only cells that do not parse need a lookup.
	missingLast bool
}

func (c csvColumn) width() int64 { return int64(len(c.at)) * c.values.size() }

type csvValues interface {
	add(cell string) error
	flat() any
	empty(room int) csvValues
	size() int64
	cut(n int)
}

type csvSlice[T arrays.Element] struct {
	values []T
	dtype  string
	parse  func(cell string) (T, error)
}

func (s *csvSlice[T]) add(cell string) error {
	v, err := s.parse(cell)
	if err != nil {
		return fmt.Errorf("the cell %s cannot be read as %s: %w", quoted(cell), s.dtype, err)
	}
	s.values = append(s.values, v)
	return nil
}

func (s *csvSlice[T]) flat() any { return slices.Clip(s.values) }

func (s *csvSlice[T]) empty(room int) csvValues {
	return &csvSlice[T]{make([]T, 0, room), s.dtype, s.parse}
}

func (s *csvSlice[T]) cut(n int) { s.values = s.values[:n] }

func (s *csvSlice[T]) size() int64 { return int64(unsafe.Sizeof(*new(T))) }

var thousands = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$`)

func advice(cell string, separator rune) string {
	v, notANumber := arrays.ParseFloat(cell, 64)
	_, notDecimal := arrays.ParseFloat(strings.Replace(cell, ",", ".", 1), 64)
	if strings.Contains(cell, "\r") {
		return ": it has a bare carriage return (CR) in it: write line ends as LF or CRLF"
	}
	decimal := ""
	if notANumber != nil && notDecimal == nil {
		decimal = fmt.Sprintf(": write a decimal point instead of the comma in %s", quoted(cell))
		if thousands.MatchString(cell) {
			decimal = fmt.Sprintf(": write %s with a point if its comma is a decimal one, and without the comma if it separates thousands", quoted(cell))
		}
	} else if notANumber != nil && thousands.MatchString(cell) {
		decimal = fmt.Sprintf(": write %s without the commas between thousands", quoted(cell))
	}
	switch comma := otherComma(cell, separator); {
	case comma != "" && decimal != "":
		return fmt.Sprintf("%s, or set Format.Comma to %s if that separates the cells", decimal, comma)
	case comma != "":
		return fmt.Sprintf(": set Format.Comma to %s if that separates the cells", comma)
	case decimal != "":
		return decimal
	case notANumber == nil && math.IsInf(v, 0), slices.Contains([]string{"na", "n/a", "nan", "null", "none", "nil", "-", "?", "."}, strings.ToLower(cell)):
		return fmt.Sprintf(": if it marks a missing value, name %s in Format.Missing, and set Field.Fill to its replacement", quoted(cell))
	case notANumber == nil:
		return ": set Field.DType to a dtype that can hold it"
	}
	return ": if it is a class, name all of them in Field.Classes; else leave the column out (Field.Columns)"
}

func otherComma(text string, separator rune) string {
	for _, comma := range []rune{';', '\t', '|', ','} {
		if comma != separator && strings.ContainsRune(text, comma) {
			return strconv.QuoteRune(comma)
		}
	}
	return ""
}

func quoted(cell string) string {
	if len(cell) > 40 {
		return strconv.Quote(cell[:40]) + "…"
	}
	return strconv.Quote(cell)
}

func cause(err error) error {
	if err == nil { // saves an allocation per cell
		return nil
	}
	if n := (*strconv.NumError)(nil); errors.As(err, &n) {
		return n.Err
	}
	return err
}

func floats[T float32 | float64](dtype string, bits int) csvValues {
	return &csvSlice[T]{dtype: dtype, parse: func(cell string) (T, error) {
		if v, ok := exactDecimal(cell); ok && (bits == 64 || once(v)) {
			return T(v), nil
		}
		v, err := arrays.ParseFloat(cell, bits)
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			err = errors.New("expected a finite number")
		}
		return T(v), cause(err)
	}}
}

func ints[T int8 | int16 | int32 | int64](dtype string, bits int) csvValues {
	return &csvSlice[T]{dtype: dtype, parse: func(cell string) (T, error) {
		v, err := strconv.ParseInt(cell, 10, bits)
		return T(v), cause(err)
	}}
}

func uints[T uint8 | uint16 | uint32 | uint64](dtype string, bits int) csvValues {
	return &csvSlice[T]{dtype: dtype, parse: func(cell string) (T, error) {
		v, err := strconv.ParseUint(cell, 10, bits)
		return T(v), cause(err)
	}}
}

func classes(texts []string) (csvValues, error) {
	number := make(map[string]int32, len(texts))
	for i, text := range texts {
		if _, twice := number[text]; twice {
			return nil, fmt.Errorf("the class %q is listed twice", text)
		}
		number[text] = int32(i)
	}
	return &csvSlice[int32]{dtype: "class", parse: func(cell string) (int32, error) {
		n, ok := number[cell]
		if !ok {
			return 0, fmt.Errorf("expected one of %d: %s", len(texts), listed.Some(texts))
		}
		return n, nil
	}}, nil
}

func valuesOf(f Field) (csvValues, error) {
	if f.Classes != nil {
		if f.DType != "" && f.DType != "int32" {
			return nil, fmt.Errorf("classes are int32, not %q", f.DType)
		}
		return classes(f.Classes)
	}
	switch f.DType {
	case "", "float32":
		return floats[float32]("float32", 32), nil
	case "float64":
		return floats[float64]("float64", 64), nil
	case "int8":
		return ints[int8]("int8", 8), nil
	case "int16":
		return ints[int16]("int16", 16), nil
	case "int32":
		return ints[int32]("int32", 32), nil
	case "int64":
		return ints[int64]("int64", 64), nil
	case "uint8":
		return uints[uint8]("uint8", 8), nil
	case "uint16":
		return uints[uint16]("uint16", 16), nil
	case "uint32":
		return uints[uint32]("uint32", 32), nil
	case "uint64":
		return uints[uint64]("uint64", 64), nil
	case "string":
		// A view of the cell would keep its row's memory alive.
		return &csvSlice[string]{dtype: "text", parse: func(cell string) (string, error) {
			if !utf8.ValidString(cell) {
				return "", errNotUTF8
			}
			return strings.Clone(cell), nil
		}}, nil
	case "bool":
		return &csvSlice[bool]{dtype: "bool", parse: func(cell string) (bool, error) {
			v, err := strconv.ParseBool(strings.ToLower(cell))
			return v, cause(err)
		}}, nil
	}
	return nil, fmt.Errorf("unknown type %q, expected float32, float64, int8 to int64, uint8 to uint64, bool or string", f.DType)
}

func chooseColumns(names []string, fields []Field, separator rune) ([]csvColumn, error) {
	if len(fields) == 0 {
		fields = []Field{{Name: "x"}}
	}
	places := make(map[string]int, len(names))
	for i, name := range names {
		if _, twice := places[name]; twice {
			return nil, fmt.Errorf("two columns have the name %q", name)
		}
		places[name] = i
	}
	chosen := make([]csvColumn, len(fields))
	taken := make([]bool, len(names))
	rest := -1
	for k, f := range fields {
		if f.Name == "" {
			return nil, fmt.Errorf("field %d of %d has no name", k+1, len(fields))
		}
		values, err := valuesOf(f)
		if err == nil && f.Fill != "" {
			if err = values.add(f.Fill); err != nil {
				err = fmt.Errorf("fill: %w", err)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		chosen[k] = csvColumn{Field: f, single: len(f.Columns) == 1, values: values}
		if len(f.Columns) == 0 {
			if rest >= 0 {
				return nil, fmt.Errorf("fields %q and %q both name no columns; only one field can take all remaining columns", fields[rest].Name, f.Name)
			}
			rest = k
		}
		for _, column := range f.Columns {
			i, ok := places[column]
			if !ok {
				hint := ""
				if comma := otherComma(names[0], separator); comma != "" && len(names) == 1 {
					hint = fmt.Sprintf(": set Format.Comma to %s if that separates the cells", comma)
				}
				return nil, fmt.Errorf("field %q: there is no column %q; there are %s%s", f.Name, column, listed.Some(names), hint)
			}
			chosen[k].at = append(chosen[k].at, i)
			taken[i] = true
		}
	}
	if rest >= 0 {
		for i, t := range taken {
			if !t {
				chosen[rest].at = append(chosen[rest].at, i)
			}
		}
		if len(chosen[rest].at) == 0 {
			return nil, fmt.Errorf("field %q: the other fields take all columns", fields[rest].Name)
		}
	}
	return chosen, nil
}
