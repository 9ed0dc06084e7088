package loop

import (
	"fmt"
	"reflect"
)

// Value is a logged value. It is read lazily: Float may wait for a device and copy from there. It may be called more
// than once, with the same result each time.
type Value interface {
	// Float is the value as a number. For a value that is none, such as an array, it returns an error.
	Float() (float64, error)
}

// Payload is a [Value] that may be more than a number, such as an array or a text. Files of a history leave out those
// that are no number.
type Payload interface {
	Value
	// Any is the value. It may wait for a device.
	Any() (any, error)
}

// Number is a [Value] that is already known.
type Number float64

// Float is the number.
func (n Number) Float() (float64, error) { return float64(n), nil }

// anyValue is a Go value as a [Payload].
type anyValue struct{ v any }

func (g anyValue) Any() (any, error) { return g.v, nil }

func (g anyValue) Float() (float64, error) {
	switch v := reflect.ValueOf(g.v); {
	case v.CanFloat():
		return v.Float(), nil
	case v.CanInt():
		return float64(v.Int()), nil
	case v.CanUint():
		return float64(v.Uint()), nil
	}
	return 0, fmt.Errorf("%T is not a number", g.v)
}
