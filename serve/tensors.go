package serve

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/listed"
)

var datatypes = map[string]string{"bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
	"uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "float32": "FP32", "float64": "FP64", "string": "BYTES"}

type kind struct {
	dtype  string
	width  int // bytes, 0 if they vary
	list   func(text string, shape []int, size int) (any, error)
	binary func(text string, size int) (any, error)
}

var kinds = map[string]kind{
	"BOOL": elementsOf("bool", 1, func(s string) (bool, error) {
		if s != "true" && s != "false" {
			return false, errors.New("neither true nor false")
		}
		return s == "true", nil
	}),
	"BYTES": {"string", 0, textList, binaryTexts},
	"INT8":  elementsOf("int8", 1, signed[int8](8)), "INT16": elementsOf("int16", 2, signed[int16](16)),
	"INT32": elementsOf("int32", 4, signed[int32](32)), "INT64": elementsOf("int64", 8, signed[int64](64)),
	"UINT8": elementsOf("uint8", 1, unsigned[uint8](8)), "UINT16": elementsOf("uint16", 2, unsigned[uint16](16)),
	"UINT32": elementsOf("uint32", 4, unsigned[uint32](32)), "UINT64": elementsOf("uint64", 8, unsigned[uint64](64)),
	"FP32": elementsOf("float32", 4, func(s string) (float32, error) { v, err := strconv.ParseFloat(s, 32); return float32(v), err }),
	"FP64": elementsOf("float64", 8, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }),
}

func textList(text string, shape []int, size int) (any, error) {
	d, texts := json.NewDecoder(strings.NewReader(text)), make([]string, 0, min(size, len(text)/3+1))
	_, err := d.Token()
	for err == nil && d.More() && len(texts) <= size {
		var one string
		err = d.Decode(&one)
		texts = append(texts, one)
	}
	switch {
	case err != nil:
		return nil, errors.New("its data is not a flat list of texts")
	case len(texts) != size:
		return nil, fmt.Errorf("its data has %d elements or more, and its shape %s means %d", len(texts), shapeText(shape), size)
	}
	return texts, nil
}

func binaryTexts(text string, size int) (any, error) {
	texts := make([]string, 0, min(size, len(text)/4+1))
	for len(text) >= 4 && len(texts) < size {
		n := binary.LittleEndian.Uint32([]byte(text[:4]))
		if text = text[4:]; uint64(n) > uint64(len(text)) {
			break
		}
		texts, text = append(texts, text[:n]), text[n:]
	}
	if len(texts) != size || text != "" || !utf8.ValidString(strings.Join(texts, "")) {
		return nil, fmt.Errorf("its bytes are not %d texts of UTF-8, each after its length", size)
	}
	return texts, nil
}

func elementsOf[T any](dtype string, width int, parse func(string) (T, error)) kind {
	return kind{dtype, width,
		func(text string, shape []int, size int) (any, error) { return elements(text, shape, size, parse) },
		func(text string, size int) (any, error) {
			flat := make([]T, size)
			_, err := binary.Decode([]byte(text), binary.LittleEndian, flat)
			return flat, err
		}}
}

func known() string { return strings.Join(slices.Sorted(maps.Keys(kinds)), ", ") }

func signed[T int8 | int16 | int32 | int64](bits int) func(string) (T, error) {
	return func(s string) (T, error) { v, err := strconv.ParseInt(s, 10, bits); return T(v), err }
}

func unsigned[T uint8 | uint16 | uint32 | uint64](bits int) func(string) (T, error) {
	return func(s string) (T, error) { v, err := strconv.ParseUint(s, 10, bits); return T(v), err }
}

// A list of [document.Document.Numbers], flat or nested as the shape, whose product is size.
func elements[T any](text string, shape []int, size int, parse func(string) (T, error)) ([]T, error) {
	// An element takes two bytes or more, so the text bounds the memory.
	flat := make([]T, 0, min(size, len(text)/2+1))
	counts, nested := make([]int, 0, len(shape)), false
	for at := 0; at < len(text); {
		switch text[at] {
		case ' ', '\t', '\n', '\r', ',':
			at++
		case '[':
			if len(counts) == len(shape) {
				return nil, fmt.Errorf("its data is nested deeper than its shape %s", shapeText(shape))
			}
			if len(counts) > 0 {
				counts[len(counts)-1]++
				nested = true
			}
			counts = append(counts, 0)
			at++
		case ']':
			last := len(counts) - 1
			if nested && counts[last] != shape[last] {
				return nil, fmt.Errorf("its data has a list of %d at axis %d, and its shape is %s", counts[last], last, shapeText(shape))
			}
			counts = counts[:last]
			at++
		default:
			if nested && len(counts) != len(shape) {
				return nil, fmt.Errorf("its data is neither a flat list nor nested as its shape %s", shapeText(shape))
			}
			if len(flat) == size {
				return nil, fmt.Errorf("its data has more elements than its shape %s means, %d", shapeText(shape), size)
			}
			end := at + 1
			for text[end] > ' ' && text[end] != ',' && text[end] != ']' {
				end++
			}
			v, err := parse(text[at:end])
			if err != nil {
				if of := (*strconv.NumError)(nil); errors.As(err, &of) {
					err = of.Err
				}
				return nil, fmt.Errorf("element %d is %s: %w", len(flat), listed.Quoted(text[at:end]), err)
			}
			counts[len(counts)-1]++
			flat = append(flat, v)
			at = end
		}
	}
	if len(flat) != size {
		return nil, fmt.Errorf("its data has %d elements, and its shape %s means %d", len(flat), shapeText(shape), size)
	}
	return flat, nil
}

func appendJSON(to []byte, a data.Array) ([]byte, error) {
	switch flat := a.Flat.(type) {
	case []bool:
		return written(to, flat, strconv.AppendBool), nil
	case []int8:
		return written(to, flat, appendInt), nil
	case []int16:
		return written(to, flat, appendInt), nil
	case []int32:
		return written(to, flat, appendInt), nil
	case []int64:
		return written(to, flat, appendInt), nil
	case []uint8:
		return written(to, flat, appendUint), nil
	case []uint16:
		return written(to, flat, appendUint), nil
	case []uint32:
		return written(to, flat, appendUint), nil
	case []uint64:
		return written(to, flat, appendUint), nil
	case []float32:
		return floats(to, flat, 32)
	case []float64:
		return floats(to, flat, 64)
	}
	text, err := json.Marshal(a.Flat)
	return append(to, text...), err
}

func appendInt[T int8 | int16 | int32 | int64](to []byte, v T) []byte {
	return strconv.AppendInt(to, int64(v), 10)
}

func appendUint[T uint8 | uint16 | uint32 | uint64](to []byte, v T) []byte {
	return strconv.AppendUint(to, uint64(v), 10)
}

func floats[T float32 | float64](to []byte, flat []T, bits int) ([]byte, error) {
	for i, v := range flat {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("element %d is %v, which JSON cannot represent: ask for binary data", i, v)
		}
	}
	return written(to, flat, func(to []byte, v T) []byte { return strconv.AppendFloat(to, float64(v), 'g', -1, bits) }), nil
}

func written[T any](to []byte, flat []T, add func([]byte, T) []byte) []byte {
	to = append(slices.Grow(to, 12*len(flat)+2), '[')
	for i, v := range flat {
		if i > 0 {
			to = append(to, ',')
		}
		to = add(to, v)
	}
	return append(to, ']')
}

// Row-major, little endian, each text after its length.
func appendBinary(to []byte, a data.Array) ([]byte, error) {
	texts, ok := a.Flat.([]string)
	if !ok {
		return binary.Append(to, binary.LittleEndian, a.Flat)
	}
	for _, text := range texts {
		to = append(binary.LittleEndian.AppendUint32(to, uint32(len(text))), text...)
	}
	return to, nil
}
