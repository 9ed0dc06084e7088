package xla

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// NotFiniteError is the first operation that made NaN or an infinity ([Eager].CheckFinite). An operation may pass on an
// infinity, like a mask's.
type NotFiniteError struct {
	// Op is an operation's name, like "Log", or "Parameter" with its name in Parameter.
	Op        string
	Parameter string
	NaN       bool
	Operands  []shapes.Shape
	Output    shapes.Shape
	// Where is the user's line, "package/file.go:12", or "", as in gradients: see From.
	Where string
	// From lists the lines that made the operands.
	From []string
}

func (e *NotFiniteError) Error() string {
	text, what := "", "an infinity"
	if e.Where != "" {
		text = e.Where + ": "
	}
	if e.NaN {
		what = "NaN"
	}
	if e.Parameter != "" {
		return text + fmt.Sprintf("parameter %q, %s, comes in with %s", e.Parameter, e.Output, what)
	}
	text += fmt.Sprintf("%s(%s) -> %s is the first to make %s", e.Op, shapeList(e.Operands), e.Output, what)
	if len(e.From) > 0 {
		text += "; its operands come from " + strings.Join(e.From, ", ")
	}
	return text
}

type finiteness uint8

const (
	finite finiteness = iota
	infinite
	notANumber
)

func (e *Eager) finiteness(b compute.Buffer, shape shapes.Shape) (finiteness, error) {
	if !shape.DType.IsFloat() && !shape.DType.IsComplex() || shape.Size() == 0 {
		return finite, nil
	}
	found, err := e.simple("finiteness", shape, func(f compute.Function, x compute.Value) (compute.Value, error) {
		c := &checks{Function: f}
		if shape.DType.IsComplex() {
			re, im := c.one(f.Real, x), c.one(f.Imag, x)
			return c.two(f.Max, c.worst(re), c.worst(im)), c.err
		}
		return c.worst(x), c.err
	}, b)
	if err != nil {
		return finite, fmt.Errorf("check for NaN: %w", err)
	}
	flat := []uint8{0}
	err = errors.Join(found.ToFlatData(flat), found.Finalize())
	return finiteness(flat[0]), err
}

type checks struct {
	compute.Function
	err error
}

func (c *checks) do(f func() (compute.Value, error)) (op compute.Value) {
	if c.err == nil {
		op, c.err = f()
	}
	return op
}

func (c *checks) one(f func(x compute.Value) (compute.Value, error), x compute.Value) compute.Value {
	return c.do(func() (compute.Value, error) { return f(x) })
}

func (c *checks) two(f func(x, y compute.Value) (compute.Value, error), x, y compute.Value) compute.Value {
	return c.do(func() (compute.Value, error) { return f(x, y) })
}

// worst is 1 for an infinity, 2 for NaN.
func (c *checks) worst(x compute.Value) compute.Value {
	number := func(truth compute.Value) compute.Value {
		return c.do(func() (compute.Value, error) { return c.ConvertDType(truth, dtypes.Uint8) })
	}
	bad := c.two(c.Add, number(c.one(c.LogicalNot, c.one(c.IsFinite, x))), number(c.one(c.IsNaN, x)))
	return c.do(func() (compute.Value, error) { return c.ReduceMax(bad) })
}
