package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/go-xla/pkg/types"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
)

// ReduceWindow reduces windows of x. strides nil means the windows' dimensions; dilations nil mean 1, paddings nil 0.
// What is padded counts as nothing.
func (b *Builder) ReduceWindow(
	x backends.Op, reductionType backends.ReduceOpType,
	windowDimensions, strides, baseDilations, windowDilations []int, paddings [][2]int,
) (backends.Op, error) {
	return b.emitOne(backends.OpTypeReduceWindow, []backends.Op{x}, func(v []*value) (*value, error) {
		rule, err := reductionOf(reductionType)
		if err != nil {
			return nil, err
		}
		rank := v[0].Shape().Rank()
		if len(windowDimensions) != rank {
			return nil, fmt.Errorf("window %v, expected %d dimensions", windowDimensions, rank)
		}
		if err := slicesPerAxis(rank, paddings, named{"strides", strides}, named{"base dilations", baseDilations}, named{"window dilations", windowDilations}); err != nil {
			return nil, err
		}
		// GoMLX tells nil from empty here.
		if _, err := shapeinference.ReduceWindowOp(shapeOf(v[0]), windowDimensions, strides, orNil(baseDilations), orNil(windowDilations), paddings); err != nil {
			return nil, err
		}
		neutral, join, err := b.function(rule, v[0])
		if err != nil || rank == 0 {
			return v[0], err
		}
		result, err := stablehlo.ReduceWindow(v[0], neutral, join, slices.Clone(windowDimensions), strides, orOnes(baseDilations, rank), orOnes(windowDilations, rank), paddings)
		if err != nil {
			return nil, err
		}
		change(b.main, "base_dilations", integers(orOnes(baseDilations, rank))) // go-xla writes the window's
		return result, nil
	})
}

type named struct {
	name string
	list []int
}

func slicesPerAxis(axes int, paddings [][2]int, lists ...named) error {
	for _, l := range lists {
		if err := perAxis(l.name, l.list, axes, 1); err != nil {
			return err
		}
	}
	if len(paddings) != 0 && len(paddings) != axes {
		return fmt.Errorf("paddings %v, expected %d pairs", paddings, axes)
	}
	return nil
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
func (b *Builder) SelectAndScatterMax(operand, source backends.Op, windowDimensions, windowStrides []int, paddings [][2]int) (backends.Op, error) {
	return b.selectAndScatter(backends.OpTypeSelectAndScatterMax, types.CompareGE, operand, source, windowDimensions, windowStrides, paddings)
}

// SelectAndScatterMin is [Builder.SelectAndScatterMax] for the smallest element.
func (b *Builder) SelectAndScatterMin(operand, source backends.Op, windowDimensions, windowStrides []int, paddings [][2]int) (backends.Op, error) {
	return b.selectAndScatter(backends.OpTypeSelectAndScatterMin, types.CompareLE, operand, source, windowDimensions, windowStrides, paddings)
}

func (b *Builder) selectAndScatter(
	kind backends.OpType, better types.ComparisonDirection, operand, source backends.Op,
	window, strides []int, paddings [][2]int,
) (backends.Op, error) {
	return b.emitOne(kind, []backends.Op{operand, source}, func(v []*value) (*value, error) {
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
		if err := slicesPerAxis(rank, paddings, named{"strides", strides}); err != nil {
			return nil, err
		}
		windows, err := shapeinference.ReduceWindowOp(shapeOf(v[0]), window, strides, nil, nil, paddings)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(windows.Dimensions, dims(v[1])) {
			return nil, fmt.Errorf("source has dimensions %v, expected one element for each window, %v", dims(v[1]), windows.Dimensions)
		}
		zero, add, err := b.function(sums, v[0])
		if err != nil {
			return nil, err
		}
		choose, err := b.joining(v[0].Shape().DType, func(lhs, rhs *value) (*value, error) { return compare(lhs, rhs, better) })
		if err != nil {
			return nil, err
		}
		return stablehlo.SelectAndScatter(v[0], v[1], zero, choose, add, window, strides, paddings)
	})
}
