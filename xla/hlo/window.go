package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// ReduceWindow reduces windows of x. strides nil means the windows' dimensions; dilations nil mean 1, paddings nil 0.
// What is padded counts as nothing.
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
		// GoMLX tells nil from empty here.
		if _, err := shapeinference.ReduceWindow(shapeOf(v[0]), windowDimensions, strides, orNil(baseDilations), orNil(windowDilations), paddings); err != nil {
			return nil, err
		}
		neutral, join, err := f.function(rule, v[0])
		if err != nil || rank == 0 {
			return v[0], err
		}
		return stablehlo.ReduceWindow(v[0], neutral, join, windowDimensions, strides, baseDilations, windowDilations, paddings)
	})
}

func orNil(list []int) []int {
	if len(list) == 0 {
		return nil
	}
	return list
}

func orOnes(list []int, n int) []int {
	if len(list) == 0 {
		return slices.Repeat([]int{1}, n)
	}
	return slices.Clone(list)
}

// SelectAndScatterMax adds each element of source to the place of the largest element of its window of operand. It is
// the gradient of a maximum over windows.
func (f *Function) SelectAndScatterMax(operand, source compute.Value, windowDimensions, windowStrides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMax, types.CompareGE, operand, source, windowDimensions, windowStrides, paddings)
}

// SelectAndScatterMin is [Function.SelectAndScatterMax] for the smallest element.
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
		if !slices.Equal(windows.Dimensions, dims(v[1])) {
			return nil, fmt.Errorf("source has dimensions %v, expected one element for each window, %v", dims(v[1]), windows.Dimensions)
		}
		zero, add, err := f.function(sums, v[0])
		if err != nil {
			return nil, err
		}
		choose, err := f.joining(v[0].Shape().DType, func(lhs, rhs *value) (*value, error) { return compare(lhs, rhs, better) })
		if err != nil {
			return nil, err
		}
		return stablehlo.SelectAndScatter(v[0], v[1], zero, choose, add, window, strides, paddings)
	})
}
