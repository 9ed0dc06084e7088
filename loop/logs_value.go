package loop

import (
	"fmt"
	"reflect"
)

// Value is something logged. It is read lazily: Float may wait for a device, and nothing is copied from there
// before somebody asks. It may be asked more than once, and gives the same answer each time.
type Value interface {
	// Float is the value as a number. Something that is none, as an array, gives an error.
	Float() (float64, error)
}

// Payload is a [Value] that is more than a number: an array, a text. History files leave those out that are no number.
type Payload interface {
	Value
	// Any is the value itself; it may wait for a device.
	Any() (any, error)
}

// Number is a [Value] that is known already.
type Number float64

// Float gives the number itself.
func (n Number) Float() (float64, error) { return float64(n), nil }

// anyValue is any value of Go as a [Payload].
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
