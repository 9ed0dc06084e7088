package parquet

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/listed"
)

type sink interface {
	add(v *value) error
	reserve(n int) error
	len() int
	size() int64
	// flat returns the values since the last call, and their memory.
	flat() (any, int64)
}

type number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | bool | string
}

type slice[T number] struct {
	mem    *memory
	values []T
	taken  int64
	to     func(v *value) (T, error)
}

func (s *slice[T]) len() int    { return len(s.values) }
func (s *slice[T]) size() int64 { return int64(unsafe.Sizeof(*new(T))) }

func (s *slice[T]) reserve(n int) (err error) {
	s.values, err = grown(s.mem, s.values, n, s.size(), &s.taken)
	return err
}

func (s *slice[T]) flat() (any, int64) {
	all, taken := s.values, s.taken
	s.values, s.taken = nil, 0
	return all[:len(all):len(all)], taken
}

func (s *slice[T]) add(v *value) error {
	if len(s.values) == cap(s.values) {
		if err := s.reserve(max(64, len(s.values))); err != nil {
			return err
		}
	}
	t, err := s.to(v)
	if err != nil {
		return err
	}
	s.values = append(s.values, t)
	return nil
}

type rawBytes struct{ slice[uint8] }

func (r *rawBytes) add(v *value) error {
	if v.kind != text {
		return r.slice.add(v)
	}
	if err := r.reserve(len(v.text)); err != nil {
		return err
	}
	r.values = append(r.values, v.text...)
	return nil
}

type textual struct {
	slice[string]
	truths bool
}

func (w *textual) add(v *value) error {
	text := w.text(v)
	if err := w.mem.take(int64(len(text))); err != nil {
		return err
	}
	w.taken += int64(len(text))
	if len(w.values) == cap(w.values) {
		if err := w.reserve(max(64, len(w.values))); err != nil {
			return err
		}
	}
	w.values = append(w.values, text)
	return nil
}

func (w *textual) text(v *value) string {
	switch {
	case v.kind == text:
		return string(v.text)
	case w.truths:
		return strconv.FormatBool(v.int != 0)
	case v.kind == unsigned:
		return strconv.FormatUint(uint64(v.int), 10)
	case v.kind == signed:
		return strconv.FormatInt(v.int, 10)
	case math.IsNaN(v.float):
		return ""
	case math.Abs(v.float) < 1e15:
		return strconv.FormatFloat(v.float, 'f', -1, 64)
	}
	return strconv.FormatFloat(v.float, 'g', -1, 64)
}

var errText = errors.New("it holds text; name its Classes, take its bytes with the type uint8, or read it with parquet.Texts")

func toFloat[T float32 | float64](v *value) (T, error) {
	f := v.float
	switch v.kind {
	case signed:
		return T(v.int), nil
	case unsigned:
		return T(uint64(v.int)), nil
	case text:
		return 0, errText
	}
	if t := T(f); !math.IsInf(float64(t), 0) && t == t {
		return t, nil
	}
	return 0, fmt.Errorf("the value %v is not finite as %T (set Field.Fill to replace such values)", f, T(0))
}

func toInt[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](v *value) (T, error) {
	w := *v
	switch {
	case v.kind == text:
		return 0, errText
	case v.kind == float && v.float >= -1<<63 && v.float < 1<<63 && v.float == math.Trunc(v.float):
		w = value{int: int64(v.float)}
	case v.kind == float && v.float >= 0 && v.float < 1<<64 && v.float == math.Trunc(v.float):
		w = value{kind: unsigned, int: int64(uint64(v.float))}
	case v.kind == float:
		return 0, fmt.Errorf("the value %v is not of dtype %T", v.float, T(0))
	}
	t := T(w.int)
	if w.kind == unsigned {
		if uint64(t) == uint64(w.int) && t >= 0 {
			return t, nil
		}
		return 0, fmt.Errorf("the value %d is not of dtype %T", uint64(w.int), t)
	}
	if int64(t) == w.int && (t < 0) == (w.int < 0) {
		return t, nil
	}
	return 0, fmt.Errorf("the value %d is not of dtype %T", w.int, t)
}

func toBool(v *value) (bool, error) {
	n, err := toInt[int64](v)
	if err == nil && n != 0 && n != 1 {
		err = fmt.Errorf("the value %d is not a bool, expected 0 or 1", n)
	}
	return n == 1, err
}

func toClass(classes []string) (func(v *value) (int32, error), error) {
	numbers := make(map[string]int32, len(classes))
	for i, c := range classes {
		if _, twice := numbers[c]; twice {
			return nil, fmt.Errorf("the class %q is listed twice", c)
		}
		numbers[c] = int32(i)
	}
	return func(v *value) (int32, error) {
		if v.kind != text {
			return 0, errors.New("classes are texts, and it holds numbers; leave Classes out to read the numbers unchanged")
		}
		n, ok := numbers[string(v.text)]
		if !ok {
			return 0, fmt.Errorf("the text %q is not one of %d classes: %s", v.text[:min(len(v.text), 40)], len(classes), listed.Some(classes))
		}
		return n, nil
	}, nil
}

func sinkOf(f Field, mem *memory) (sink, error) {
	if f.Classes != nil {
		if f.DType != "" && f.DType != "int32" {
			return nil, fmt.Errorf("classes are int32, not %q", f.DType)
		}
		to, err := toClass(f.Classes)
		return &slice[int32]{mem: mem, to: to}, err
	}
	switch f.DType {
	case "", "float32":
		return &slice[float32]{mem: mem, to: toFloat[float32]}, nil
	case "float64":
		return &slice[float64]{mem: mem, to: toFloat[float64]}, nil
	case "int8":
		return &slice[int8]{mem: mem, to: toInt[int8]}, nil
	case "int16":
		return &slice[int16]{mem: mem, to: toInt[int16]}, nil
	case "int32":
		return &slice[int32]{mem: mem, to: toInt[int32]}, nil
	case "int64":
		return &slice[int64]{mem: mem, to: toInt[int64]}, nil
	case "uint8":
		return &rawBytes{slice[uint8]{mem: mem, to: toInt[uint8]}}, nil
	case "uint16":
		return &slice[uint16]{mem: mem, to: toInt[uint16]}, nil
	case "uint32":
		return &slice[uint32]{mem: mem, to: toInt[uint32]}, nil
	case "uint64":
		return &slice[uint64]{mem: mem, to: toInt[uint64]}, nil
	case "string":
		return &textual{slice: slice[string]{mem: mem}}, nil
	case "bool":
		return &slice[bool]{mem: mem, to: toBool}, nil
	}
	return nil, fmt.Errorf("unknown type %q, expected float32, float64, int8 to int64, uint8 to uint64, bool or string", f.DType)
}

func fillOf(f Field) (*value, error) {
	if f.Fill == "" {
		return nil, nil
	}
	if f.Classes != nil {
		return &value{kind: text, text: []byte(f.Fill)}, nil
	}
	if i, err := strconv.ParseInt(f.Fill, 10, 64); err == nil {
		return &value{int: i}, nil
	}
	n, err := strconv.ParseFloat(f.Fill, 64)
	if err != nil {
		return nil, fmt.Errorf("fill %q is not a number: %w", f.Fill, errors.Unwrap(err))
	}
	return &value{kind: float, float: n}, nil
}
