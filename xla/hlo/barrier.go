package hlo

import (
	"slices"

	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// behind gives x once another value is there. On the CPU XLA drops its barriers before it joins equal operations: a
// value that was to be computed again later, to save memory, would be kept. There x is selected by a condition that is
// always true, which XLA cannot know: a number times 0 is 0, or NaN.
func (f *Function) behind(x, other *value) (*value, error) {
	if !f.b.cpu || classOf(other) != float || slices.Contains(dims(other), 0) {
		return kept(x, other)
	}
	c := &chain{}
	limits := slices.Repeat([]int{1}, other.Shape().Rank())
	first := c.do(func() (*value, error) { return stablehlo.Slice(other, make([]int, len(limits)), limits, nil) })
	first = c.do(func() (*value, error) { return stablehlo.Reshape(first, like(other)) })
	zero := c.do(func() (*value, error) { return scalar(f.text, other.Shape().DType, 0) })
	product := c.two(stablehlo.Multiply, first, zero)
	always := c.two(stablehlo.Or, c.compare(product, zero, types.CompareEQ), c.compare(product, product, types.CompareNE))
	return c.choose(always, x, f.like(c, x, 0)), c.err
}
