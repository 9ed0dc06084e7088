package hlo

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// ReduceWindow's padding does not change results.
func (f *Function) ReduceWindow(
	x compute.Value, reductionType compute.ReduceOpType,
	windowDimensions, strides, baseDilations, windowDilations []int, paddings [][2]int,
) (compute.Value, error) {
	return f.emitOne(compute.OpTypeReduceWindow, []compute.Value{x}, func(v []*value) (*value, error) {
		rule, err := reductionOf(reductionType)
		if err != nil {
			return nil, err
		}
		rank := v[0].Shape().Rank()
		if len(windowDimensions) != rank {
			return nil, fmt.Errorf("window %v, expected %d dimensions", windowDimensions, rank)
		}
		// GoMLX distinguishes nil from empty here.
		if _, err := shapeinference.ReduceWindow(shapeOf(v[0]), windowDimensions, strides, orNil(baseDilations), orNil(windowDilations), paddings); err != nil {
			return nil, err
		}
		if err := checkPlaces(dims(v[0]), windowDimensions, strides, baseDilations, windowDilations, paddings); err != nil {
			return nil, err
		}
		neutral, join, err := f.function(rule, v[0])
		if err != nil || rank == 0 {
			return v[0], err
		}
		return stablehlo.ReduceWindow(v[0], neutral, join, windowDimensions, strides, baseDilations, windowDilations, paddings)
	})
}

const maxPlaces = 1 << 48

// These numbers would overflow in XLA and end the process. Lists may be empty.
func checkPlaces(sizes, window, strides, dilations, windowDilations []int, paddings [][2]int) error {
	at := func(list []int, i int) float64 {
		if len(list) == 0 {
			return 1
		}
		return math.Abs(float64(list[i]))
	}
	for i, size := range sizes {
		whole := float64(size) * at(dilations, i)
		if len(paddings) > 0 {
			whole += math.Abs(float64(paddings[i][0])) + math.Abs(float64(paddings[i][1]))
		}
		if reach := at(window, i) * at(windowDilations, i); max(whole, reach, at(strides, i)) > maxPlaces {
			return fmt.Errorf("axis %d has %.3g places with its dilation and padding, its window %.3g with the stride %.3g: expected at most %.3g",
				i, whole, reach, at(strides, i), float64(maxPlaces))
		}
	}
	return nil
}

func orNil(list []int) []int {
	if len(list) == 0 {
		return nil
	}
	return list
}

// SelectAndScatterMax adds each element of source at the maximum of its window of operand: the gradient of max pooling.
func (f *Function) SelectAndScatterMax(operand, source compute.Value, windowDimensions, windowStrides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMax, types.CompareGE, operand, source, windowDimensions, windowStrides, paddings)
}

func (f *Function) SelectAndScatterMin(operand, source compute.Value, windowDimensions, windowStrides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMin, types.CompareLE, operand, source, windowDimensions, windowStrides, paddings)
}

func (f *Function) selectAndScatter(
	kind compute.OpType, better types.ComparisonDirection, operand, source compute.Value,
	window, strides []int, paddings [][2]int,
) (compute.Value, error) {
	return f.emitOne(kind, []compute.Value{operand, source}, func(v []*value) (*value, error) {
		rank := v[0].Shape().Rank()
		if err := real.need(v...); err != nil {
			return nil, err
		}
		if err := sameType(v...); err != nil {
			return nil, err
		}
		if rank == 0 || len(window) != rank {
			return nil, fmt.Errorf("window %v for an array of rank %d, expected as many dimensions, one at least", window, rank)
		}
		windows, err := shapeinference.ReduceWindow(shapeOf(v[0]), window, strides, nil, nil, paddings)
		if err != nil {
			return nil, err
		}
		if err := checkPlaces(dims(v[0]), window, strides, nil, nil, paddings); err != nil {
			return nil, err
		}
		if !slices.Equal(windows.Dimensions, dims(v[1])) {
			return nil, fmt.Errorf("source has dimensions %v, expected one element for each window, %v", dims(v[1]), windows.Dimensions)
		}
		if len(paddings) == 0 {
			paddings = make([][2]int, rank)
		}
		if f.b.tpu && v[0].Shape().DType.Bits() == 64 {
			return f.selectByTaps(better, v[0], v[1], window, orStrides(strides, window), paddings)
		}
		if f.b.tpu && rank > 1 {
			return f.selectBehindUnits(better, v[0], v[1], window, orStrides(strides, window), paddings)
		}
		return f.selectPlain(better, v[0], v[1], window, strides, paddings)
	})
}

func (f *Function) selectPlain(better types.ComparisonDirection, operand, source *value, window, strides []int, paddings [][2]int) (*value, error) {
	zero, add, err := f.function(sums, operand)
	if err != nil {
		return nil, err
	}
	choose, err := f.joining(operand.Shape().DType, func(lhs, rhs *value) (*value, error) { return compare(lhs, rhs, better) })
	if err != nil {
		return nil, err
	}
	return stablehlo.SelectAndScatter(operand, source, zero, choose, add, window, strides, paddings)
}

func orStrides(strides, window []int) []int {
	if len(strides) == 0 {
		return slices.Clone(window)
	}
	return slices.Clone(strides)
}

// TPUs need two innermost axes without a window.
func (f *Function) selectBehindUnits(better types.ComparisonDirection, operand, source *value, window, strides []int, paddings [][2]int) (*value, error) {
	free := 0
	for i := range window {
		if window[i] == 1 && strides[i] == 1 {
			free++
		}
	}
	if free >= 2 {
		return f.selectPlain(better, operand, source, window, strides, paddings)
	}
	units := slices.Repeat([]int{1}, 2-free)
	c := &chain{}
	more := func(v *value) *value {
		return c.do(func() (*value, error) { return reshape(v, slices.Concat(dims(v), units)...) })
	}
	x, y := more(operand), more(source)
	result := c.do(func() (*value, error) {
		return f.selectPlain(better, x, y, slices.Concat(window, units), slices.Concat(strides, units), append(slices.Clone(paddings), make([][2]int, len(units))...))
	})
	return c.do(func() (*value, error) { return reshape(result, dims(operand)...) }), c.err
}

// The program grows with the window.
const mostTaps = 256

// selectByTaps serves 64-bit numbers on TPUs, which lack select-and-scatter: it finds each window's best position
// (tap), the first of equal ones, then adds up, tap by tap, the elements of source that chose it.
func (f *Function) selectByTaps(better types.ComparisonDirection, operand, source *value, window, strides []int, paddings [][2]int) (*value, error) {
	taps := 1
	for _, n := range window {
		taps *= n
	}
	if taps > mostTaps {
		return nil, fmt.Errorf("a window of %d elements of type %s, but of 64 bits a TPU has %d at most: convert them (graph.ConvertDType)",
			taps, operand.Shape().DType, mostTaps)
	}
	if source.Shape().Size() == 0 || operand.Shape().Size() == 0 {
		return full(f.text, operand.Shape(), 0)
	}
	c, rank := &chain{}, len(window)
	low, high, none := make([]int, rank), make([]int, rank), make([]int, rank)
	for axis, p := range paddings {
		low[axis], high[axis] = p[0], p[1]
	}
	zero := c.do(func() (*value, error) { return scalar(f.text, operand.Shape().DType, 0) })
	no := c.do(func() (*value, error) { return scalar(f.text, dtypes.Bool, 0) })
	there := c.do(func() (*value, error) {
		return full(f.text, toXLA(shapes.Make(dtypes.Bool, dims(operand)...)), 1)
	})
	x := c.do(func() (*value, error) { return stablehlo.Pad(operand, zero, low, high, none) })
	there = c.do(func() (*value, error) { return stablehlo.Pad(there, no, low, high, none) })
	if c.err != nil {
		return nil, c.err
	}
	at := func(tap int) (starts, limits []int) {
		starts, limits = make([]int, rank), make([]int, rank)
		for axis := rank - 1; axis >= 0; axis-- {
			starts[axis] = tap % window[axis]
			tap /= window[axis]
			limits[axis] = starts[axis] + (dims(source)[axis]-1)*strides[axis] + 1
		}
		return starts, limits
	}
	part := func(v *value, tap int) *value {
		starts, limits := at(tap)
		return c.do(func() (*value, error) { return stablehlo.Slice(v, starts, limits, strides) })
	}
	number := func(tap int) *value {
		return c.do(func() (*value, error) { return full(f.text, toXLA(shapes.Make(dtypes.Int32, dims(source)...)), tap) })
	}
	best, known := part(x, 0), part(there, 0)
	chosen := c.choose(known, number(0), number(-1))
	for tap := 1; tap < taps; tap++ {
		element, inside := part(x, tap), part(there, tap)
		stays := c.two(stablehlo.And, known, c.compare(best, element, better))
		takes := c.two(stablehlo.And, inside, c.one(stablehlo.Not, stays))
		best, chosen = c.choose(takes, element, best), c.choose(takes, number(tap), chosen)
		known = c.two(stablehlo.Or, known, inside)
	}
	var sum *value
	interior := make([]int, rank)
	for axis, n := range strides {
		interior[axis] = n - 1
	}
	for tap := range taps {
		own := c.choose(c.compare(chosen, number(tap), types.CompareEQ), source, f.like(c, source, 0))
		before, limits := at(tap)
		behind := make([]int, rank)
		for axis := range behind {
			behind[axis] = dims(x)[axis] - limits[axis]
		}
		own = c.do(func() (*value, error) { return stablehlo.Pad(own, zero, before, behind, interior) })
		if sum == nil {
			sum = own
		} else {
			sum = c.two(stablehlo.Add, sum, own)
		}
		if c.err != nil {
			return nil, c.err
		}
	}
	for axis := range low {
		low[axis], high[axis] = -low[axis], -high[axis]
	}
	return c.do(func() (*value, error) { return stablehlo.Pad(sum, zero, low, high, none) }), c.err
}
