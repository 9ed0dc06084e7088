package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/go-xla/stablehlo"
)

// Gather clamps indices; see [compute.StandardOps].
func (f *Function) Gather(
	operand, startIndices compute.Value, indexVectorAxis int,
	offsetOutputAxes, collapsedSliceAxes, startIndexMap, sliceSizes []int, indicesAreSorted bool,
) (compute.Value, error) {
	return f.emitOne(compute.OpTypeGather, []compute.Value{operand, startIndices}, func(v []*value) (*value, error) {
		indices, err := vectors(v[1], indexVectorAxis)
		if err != nil {
			return nil, err
		}
		if err := checkAxes("start index map", startIndexMap, v[0].Shape().Rank()); err != nil {
			return nil, err
		}
		if !slices.IsSorted(offsetOutputAxes) {
			return nil, fmt.Errorf("offset output axes %v, expected increasing ones", offsetOutputAxes)
		}
		if slices.ContainsFunc(sliceSizes, func(n int) bool { return n < 0 }) {
			return nil, fmt.Errorf("slice sizes %v, expected none below 0", sliceSizes)
		}
		_, err = shapeinference.Gather(shapeOf(v[0]), shapeOf(indices), indexVectorAxis, offsetOutputAxes, collapsedSliceAxes, startIndexMap, sliceSizes, indicesAreSorted)
		if err != nil {
			return nil, err
		}
		return stablehlo.Gather(v[0], indices, indexVectorAxis, offsetOutputAxes, slices.Sorted(slices.Values(collapsedSliceAxes)), nil, nil, startIndexMap, sliceSizes, indicesAreSorted)
	})
}

func vectors(indices *value, vectorAxis int) (*value, error) {
	if err := integer.need(indices); err != nil {
		return nil, fmt.Errorf("indices: %w", err)
	}
	rank := indices.Shape().Rank()
	if vectorAxis < 0 || vectorAxis > rank {
		return nil, fmt.Errorf("index vector axis %d for indices of rank %d, expected from 0 to %d", vectorAxis, rank, rank)
	}
	if vectorAxis == rank {
		return reshape(indices, append(slices.Clone(dims(indices)), 1)...)
	}
	return indices, nil
}

// ScatterSum drops updates out of range; see [compute.StandardOps].
func (f *Function) ScatterSum(
	operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, indicesAreSorted, uniqueIndices bool,
) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterSum, sums, operand, scatterIndices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes, indicesAreSorted, uniqueIndices)
}

func (f *Function) ScatterMax(
	operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, indicesAreSorted, uniqueIndices bool,
) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMax, maxima, operand, scatterIndices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes, indicesAreSorted, uniqueIndices)
}

func (f *Function) ScatterMin(
	operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, indicesAreSorted, uniqueIndices bool,
) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMin, minima, operand, scatterIndices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes, indicesAreSorted, uniqueIndices)
}

func (f *Function) scatter(
	kind compute.OpType, rule reduction, operand, scatterIndices, updates compute.Value, vectorAxis int,
	windowAxes, insertedAxes, indexedAxes []int, sorted, unique bool,
) (compute.Value, error) {
	return f.emitOne(kind, []compute.Value{operand, scatterIndices, updates}, func(v []*value) (*value, error) {
		if err := sameType(v[0], v[2]); err != nil {
			return nil, err
		}
		indices, err := vectors(v[1], vectorAxis)
		if err != nil {
			return nil, err
		}
		rank := v[0].Shape().Rank()
		for _, a := range []struct {
			name string
			list []int
			rank int
		}{{"update window axes", windowAxes, v[2].Shape().Rank()}, {"inserted window axes", insertedAxes, rank}, {"scatter axes", indexedAxes, rank}} {
			if err := checkAxes(a.name, a.list, a.rank); err != nil {
				return nil, err
			}
		}
		if !slices.IsSorted(windowAxes) {
			return nil, fmt.Errorf("update window axes %v, expected increasing ones", windowAxes)
		}
		if _, err := shapeinference.Scatter(shapeOf(v[0]), shapeOf(indices), shapeOf(v[2]), vectorAxis, windowAxes, insertedAxes, indexedAxes); err != nil {
			return nil, err
		}
		places := slices.Delete(slices.Clone(dims(indices)), vectorAxis, vectorAxis+1)
		for axis, dim := range dims(v[2]) {
			if slices.Contains(windowAxes, axis) {
				continue
			}
			if dim != places[0] {
				return nil, fmt.Errorf("updates of dimensions %v for indices of dimensions %v, expected the same outside of windows", dims(v[2]), dims(indices))
			}
			places = places[1:]
		}
		_, join, err := f.function(rule, v[0])
		if err != nil {
			return nil, err
		}
		if c, ok := f.exchanged(v[2]); ok && vectorAxis > 0 && !slices.Contains(windowAxes, 0) {
			if f.b.parts(c)*v[0].Shape().Size() <= v[2].Shape().Size() {
				return f.scatterParts(rule, v[0], indices, v[2], c, vectorAxis, windowAxes, insertedAxes, indexedAxes)
			}
			if v[2], err = f.everywhere(v[2], c); err != nil {
				return nil, err
			}
			if indices, err = f.everywhere(indices, c); err != nil {
				return nil, err
			}
		}
		return stablehlo.Scatter(v[0], indices, v[2], windowAxes, slices.Sorted(slices.Values(insertedAxes)), nil, nil, indexedAxes, vectorAxis, sorted, unique, join)
	})
}

// DynamicSlice also takes a vector of indices.
func (f *Function) DynamicSlice(operand compute.Value, startIndices []compute.Value, sliceDims []int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeDynamicSlice, append([]compute.Value{operand}, startIndices...), func(v []*value) (*value, error) {
		x := v[0]
		starts, err := places(x, v[1:])
		if err != nil {
			return nil, err
		}
		if err := fits(x, sliceDims); err != nil {
			return nil, err
		}
		if x.Shape().Rank() == 0 {
			return x, nil
		}
		return stablehlo.DynamicSlice(x, starts, sliceDims)
	})
}

func (f *Function) DynamicUpdateSlice(operand, update compute.Value, startIndices []compute.Value) (compute.Value, error) {
	return f.emitOne(compute.OpTypeDynamicUpdateSlice, append([]compute.Value{operand, update}, startIndices...), func(v []*value) (*value, error) {
		x, update := v[0], v[1]
		if err := sameType(x, update); err != nil {
			return nil, err
		}
		starts, err := places(x, v[2:])
		if err != nil {
			return nil, err
		}
		if err := fits(x, dims(update)); err != nil {
			return nil, err
		}
		if x.Shape().Rank() == 0 {
			return update, nil
		}
		return stablehlo.DynamicUpdateSlice(x, update, starts)
	})
}

func places(x *value, starts []*value) ([]*value, error) {
	rank := x.Shape().Rank()
	if len(starts) == 1 && slices.Equal(dims(starts[0]), []int{rank}) {
		vector := starts[0]
		starts = make([]*value, rank)
		for i := range starts {
			one, err := stablehlo.Slice(vector, []int{i}, []int{i + 1}, nil)
			if err != nil {
				return nil, err
			}
			if starts[i], err = reshape(one); err != nil {
				return nil, err
			}
		}
	}
	if len(starts) != rank {
		return nil, fmt.Errorf("%d start indices, expected one for each of the %d axes, or a vector of them", len(starts), rank)
	}
	mixed := false
	for _, start := range starts {
		if err := integer.need(start); err != nil {
			return nil, fmt.Errorf("start indices: %w", err)
		}
		if start.Shape().Rank() != 0 {
			return nil, fmt.Errorf("start index of shape %s, expected a scalar", start.Shape())
		}
		mixed = mixed || start.Shape().DType != starts[0].Shape().DType
	}
	if !mixed {
		return starts, nil
	}
	same := make([]*value, len(starts))
	for i, start := range starts {
		var err error
		if same[i], err = convert(start, dtypes.Int64); err != nil {
			return nil, err
		}
	}
	return same, nil
}

func fits(x *value, slice []int) error {
	ok := len(slice) == x.Shape().Rank()
	for axis, dim := range slice {
		ok = ok && dim >= 0 && dim <= dims(x)[axis]
	}
	if !ok {
		return fmt.Errorf("a slice of dimensions %v of %s, expected the same number of dimensions, each no larger", slice, x.Shape())
	}
	return nil
}
