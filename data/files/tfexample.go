package files

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
)

// TFExample is a tf.train.Example: [][]byte, []float32 or []int64 by feature name.
type TFExample map[string]any

const (
	tfFeatures = 10_000
	tfValues   = 8 << 20
)

// ParseTFExample parses a tf.train.Example with at most 10,000 features, and 8 MB plus the size of record for their
// values. Bytes are views of record. The last of duplicate names counts.
func ParseTFExample(record []byte) (TFExample, error) {
	p := tfParser{example: TFExample{}, left: tfValues + len(record)}
	err := p.message(record, func(number protowire.Number, value []byte) error {
		if number != 1 { // Example.features
			return nil
		}
		return p.message(value, func(number protowire.Number, value []byte) error {
			if number != 1 { // Features.feature
				return nil
			}
			return p.feature(value)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("files: parse a tf.train.Example: %w", err)
	}
	return p.example, nil
}

var errNoExample = errors.New("not a tf.train.Example")

type tfParser struct {
	example TFExample
	left    int
	entries int
}

func (p *tfParser) message(b []byte, f func(number protowire.Number, value []byte) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errNoExample, protowire.ParseError(n))
		}
		b = b[n:]
		if kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return fmt.Errorf("%w: field %d: %w", errNoExample, number, protowire.ParseError(n))
			}
			if err := f(number, value); err != nil {
				return err
			}
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return fmt.Errorf("%w: field %d: %w", errNoExample, number, protowire.ParseError(n))
		}
		b = b[n:]
	}
	return nil
}

func (p *tfParser) feature(entry []byte) error {
	if p.entries++; p.entries > tfFeatures {
		return fmt.Errorf("more than %d features: %w", tfFeatures, data.ErrLimit)
	}
	name, list := "", any([][]byte(nil))
	err := p.message(entry, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			name = string(value)
		case 2:
			return p.message(value, func(kind protowire.Number, value []byte) (err error) {
				switch kind {
				case 1:
					list, err = p.bytesList(value)
				case 2:
					list, err = p.floatList(value)
				case 3:
					list, err = p.intList(value)
				}
				return err
			})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("feature %.40q: %w", name, err)
	}
	p.example[name] = list
	return nil
}

func (p *tfParser) take(bytes int) error {
	if p.left -= bytes; p.left < 0 {
		return fmt.Errorf("the values take more than %d bytes: %w", tfValues, data.ErrLimit)
	}
	return nil
}

func (p *tfParser) bytesList(b []byte) ([][]byte, error) {
	n := 0
	if err := p.message(b, func(protowire.Number, []byte) error { n++; return nil }); err != nil {
		return nil, err
	}
	if err := p.take(24 * n); err != nil {
		return nil, err
	}
	list := make([][]byte, 0, n)
	err := p.message(b, func(number protowire.Number, value []byte) error {
		if number == 1 {
			list = append(list, value[:len(value):len(value)])
		}
		return nil
	})
	return list, err
}

func (p *tfParser) floatList(b []byte) ([]float32, error) {
	list := []float32{}
	err := p.numbers(b, protowire.Fixed32Type, func(packed []byte) error {
		n := len(packed) / 4
		if err := p.take(4 * n); err != nil {
			return err
		}
		list = slices.Grow(list, n)
		for len(packed) > 0 {
			v, n := protowire.ConsumeFixed32(packed)
			if n < 0 {
				return fmt.Errorf("%w: a packed number: %w", errNoExample, protowire.ParseError(n))
			}
			list, packed = append(list, math.Float32frombits(v)), packed[n:]
		}
		return nil
	})
	return list, err
}

func (p *tfParser) intList(b []byte) ([]int64, error) {
	list := []int64{}
	err := p.numbers(b, protowire.VarintType, func(packed []byte) error {
		n := 0
		for _, c := range packed { // a number's last byte is below 128
			if c < 0x80 {
				n++
			}
		}
		if err := p.take(8 * n); err != nil {
			return err
		}
		list = slices.Grow(list, n)
		for len(packed) > 0 {
			v, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				return fmt.Errorf("%w: a packed number: %w", errNoExample, protowire.ParseError(n))
			}
			list, packed = append(list, int64(v)), packed[n:]
		}
		return nil
	})
	return list, err
}

// Protocol buffers allow packed and single numbers.
func (p *tfParser) numbers(b []byte, single protowire.Type, add func(packed []byte) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errNoExample, protowire.ParseError(n))
		}
		field := b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, field); n < 0 {
			return fmt.Errorf("%w: field %d: %w", errNoExample, number, protowire.ParseError(n))
		}
		b, field = field[n:], field[:n]
		switch {
		case number == 1 && kind == protowire.BytesType:
			field, _ = protowire.ConsumeBytes(field)
		case number != 1 || kind != single:
			continue
		}
		if err := add(field); err != nil {
			return err
		}
	}
	return nil
}

// Field returns the named feature as one example's field with the given dims: []float32, []int64, or the single bytes
// value as []uint8.
func (e TFExample) Field(name string, dims ...int) (data.Field, error) {
	flat, ok := e[name]
	if !ok {
		return data.Field{}, fmt.Errorf("files: the example has no feature %q; there are %s", name, listed.Some(slices.Sorted(maps.Keys(e))))
	}
	if list, ok := flat.([][]byte); ok {
		if len(list) != 1 {
			return data.Field{}, fmt.Errorf("files: the feature %q has %d values of bytes, expected one", name, len(list))
		}
		flat = []uint8(list[0])
	}
	f := data.Named(name, flat, append([]int{1}, dims...)...)
	if err := arrays.Check(f.Array.Flat, f.Array.Dims); err != nil {
		return data.Field{}, fmt.Errorf("files: the feature %q: %w", name, err)
	}
	return f, nil
}
