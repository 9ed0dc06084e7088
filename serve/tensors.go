package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/lazo-ml/lazo/data"
)

// cut replaces the number lists named "data" in a JSON text by their indices (docs/decisions/0017).
func cut(text []byte) (rest []byte, lists [][]byte) {
	const name = `"data"`
	from := 0
	for at := 0; at < len(text); at++ {
		if text[at] != '"' {
			continue
		}
		begin := at
		for at++; at < len(text) && text[at] != '"'; at++ {
			if text[at] == '\\' {
				at++
			}
		}
		if at >= len(text) || string(text[begin:at+1]) != name {
			continue
		}
		value := bytes.TrimLeft(text[at+1:], " \t\r\n")
		if value = bytes.TrimPrefix(value, []byte(":")); len(value) == 0 {
			continue
		}
		value = bytes.TrimLeft(value, " \t\r\n")
		n := listed(value)
		if n == 0 {
			continue
		}
		rest = append(rest, text[from:begin]...)
		rest = fmt.Appendf(rest, `"data:list":%d`, len(lists))
		lists = append(lists, value[:n])
		from = len(text) - len(value) + n
		at = from - 1
	}
	return append(rest, text[from:]...), lists
}

func listed(text []byte) int {
	depth := 0
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9' && depth > 0:
		case c == '[':
			depth++
		case depth == 0:
			return 0
		case c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		default:
			switch c {
			case ',', '-', '+', '.', 'e', 'E', ' ', '\t', '\r', '\n', 't', 'r', 'u', 'f', 'a', 'l', 's': // of numbers, true and false
			default:
				return 0
			}
		}
	}
	return 0
}

func decode(text []byte, datatype string, shape []int) (flat any, err error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, errors.New("it has no data")
	}
	if len(shape) == 0 {
		return nil, errors.New("its shape has no axes: the first one counts the examples")
	}
	switch datatype {
	case "BOOL":
		return list(text, shape, func(s string) (bool, error) {
			if s != "true" && s != "false" {
				return false, errors.New("neither true nor false")
			}
			return s == "true", nil
		})
	case "INT8":
		return list(text, shape, signed[int8](8))
	case "INT16":
		return list(text, shape, signed[int16](16))
	case "INT32":
		return list(text, shape, signed[int32](32))
	case "INT64":
		return list(text, shape, signed[int64](64))
	case "UINT8":
		return list(text, shape, unsigned[uint8](8))
	case "UINT16":
		return list(text, shape, unsigned[uint16](16))
	case "UINT32":
		return list(text, shape, unsigned[uint32](32))
	case "UINT64":
		return list(text, shape, unsigned[uint64](64))
	case "FP32":
		return list(text, shape, func(s string) (float32, error) { v, err := strconv.ParseFloat(s, 32); return float32(v), err })
	case "FP64":
		return list(text, shape, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	}
	return nil, fmt.Errorf("datatype %q, expected one of %s", datatype, known())
}

func signed[T int8 | int16 | int32 | int64](bits int) func(string) (T, error) {
	return func(s string) (T, error) { v, err := strconv.ParseInt(s, 10, bits); return T(v), err }
}

func unsigned[T uint8 | uint16 | uint32 | uint64](bits int) func(string) (T, error) {
	return func(s string) (T, error) { v, err := strconv.ParseUint(s, 10, bits); return T(v), err }
}

func list[T any](text []byte, shape []int, parse func(string) (T, error)) ([]T, error) {
	size := 1
	for _, d := range shape {
		if d < 0 {
			return nil, fmt.Errorf("its shape is %v, expected lengths of 0 and up", shape)
		}
		if d > 0 && size > math.MaxInt32/d {
			return nil, fmt.Errorf("its shape is %v, expected at most %d elements", shape, math.MaxInt32)
		}
		size *= d
	}
	// Each element takes two bytes or more, so the text bounds the memory.
	flat := make([]T, 0, min(size, len(text)/2+1))
	counts, nested := make([]int, 0, len(shape)), false
	all, before := string(text), byte('[') // the previous token: a bracket, a comma, or ']' for a value
	for at := 0; at < len(all); {
		c := all[at]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			at++
			continue
		}
		if value := before == ']'; value && c != ',' && c != ']' || !value && (c == ',' || c == ']' && before == ',') {
			return nil, fmt.Errorf("its data has a comma too many or too few at %.20q", all[at:])
		}
		switch before = c; c {
		case ',':
			at++
		case '[':
			if len(counts) == len(shape) {
				return nil, fmt.Errorf("its data is nested deeper than its shape %v", shape)
			}
			if len(counts) > 0 {
				counts[len(counts)-1]++
				nested = true
			}
			counts = append(counts, 0)
			at++
		case ']':
			if nested && counts[len(counts)-1] != shape[len(counts)-1] {
				return nil, fmt.Errorf("its data has a list of %d at axis %d, and its shape is %v", counts[len(counts)-1], len(counts)-1, shape)
			}
			counts = counts[:len(counts)-1]
			at++
		default:
			before = ']'
			end := at + 1
			for end < len(all) && all[end] > ' ' && all[end] != ',' && all[end] != ']' {
				end++
			}
			v, err := parse(all[at:end])
			if c == '"' || c == '{' || c == 'n' {
				err = errors.New("no number or truth value")
			}
			if err != nil {
				return nil, fmt.Errorf("element %d is %.20s: %w", len(flat), all[at:end], cause(err))
			}
			if len(counts) == 0 || nested && len(counts) != len(shape) {
				return nil, fmt.Errorf("its data is neither a flat list nor nested as its shape %v", shape)
			}
			counts[len(counts)-1]++
			flat = append(flat, v)
			at = end
		}
	}
	if len(flat) != size {
		return nil, fmt.Errorf("its data has %d elements, and its shape %v means %d", len(flat), shape, size)
	}
	return flat, nil
}

func cause(err error) error {
	var of *strconv.NumError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

func encode(a data.Array) ([]byte, error) {
	switch flat := a.Flat.(type) {
	case []bool:
		return written(flat, strconv.AppendBool), nil
	case []int8:
		return written(flat, appendInt), nil
	case []int16:
		return written(flat, appendInt), nil
	case []int32:
		return written(flat, appendInt), nil
	case []int64:
		return written(flat, appendInt), nil
	case []uint8:
		return written(flat, appendUint), nil
	case []uint16:
		return written(flat, appendUint), nil
	case []uint32:
		return written(flat, appendUint), nil
	case []uint64:
		return written(flat, appendUint), nil
	case []float32:
		return floats(flat, 32)
	case []float64:
		return floats(flat, 64)
	case []string:
		return json.Marshal(flat)
	}
	return nil, fmt.Errorf("its elements are %T, for which the protocol has no name", a.Flat)
}

func appendInt[T int8 | int16 | int32 | int64](to []byte, v T) []byte {
	return strconv.AppendInt(to, int64(v), 10)
}

func appendUint[T uint8 | uint16 | uint32 | uint64](to []byte, v T) []byte {
	return strconv.AppendUint(to, uint64(v), 10)
}

func floats[T float32 | float64](flat []T, bits int) ([]byte, error) {
	for i, v := range flat {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("element %d is %v, which JSON cannot represent", i, v)
		}
	}
	return written(flat, func(to []byte, v T) []byte { return strconv.AppendFloat(to, float64(v), 'g', -1, bits) }), nil
}

func written[T any](flat []T, add func([]byte, T) []byte) []byte {
	text := append(make([]byte, 0, 12*len(flat)+2), '[')
	for i, v := range flat {
		if i > 0 {
			text = append(text, ',')
		}
		text = add(text, v)
	}
	return append(text, ']')
}
