package hlo

import (
	"cmp"
	"errors"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/go-xla/stablehlo"
)

// DotGeneral's config.AccumulatorDType and config.OutputDType default to the operands' dtype.
func (f *Function) DotGeneral(
	lhs compute.Value, lhsContractingAxes, lhsBatchAxes []int,
	rhs compute.Value, rhsContractingAxes, rhsBatchAxes []int, config compute.DotGeneralConfig,
) (compute.Value, error) {
	return f.emitOne(compute.OpTypeDotGeneral, []compute.Value{lhs, rhs}, func(v []*value) (*value, error) {
		given, dtype := v[0], v[0].Shape().DType
		sum := cmp.Or(config.AccumulatorDType, dtype)
		if err := errors.Join(checkType(sum), checkType(cmp.Or(config.OutputDType, dtype))); err != nil {
			return nil, err
		}
		if err := sameType(v...); err != nil {
			return nil, err
		}
		if classes[sum] != classes[dtype] || sum.Bits() <= dtype.Bits() { // else the dot accumulates in sum
			for i := range v {
				var err error
				if v[i], err = convert(v[i], sum); err != nil {
					return nil, err
				}
			}
		}
		product, err := f.dot(v[0], side{lhsContractingAxes, lhsBatchAxes}, v[1], side{rhsContractingAxes, rhsBatchAxes}, sum)
		if err != nil {
			return nil, err
		}
		product, err = convert(product, cmp.Or(config.OutputDType, dtype))
		if err == nil && crossedFirst(side{lhsContractingAxes, lhsBatchAxes}) {
			f.b.keepCut(given, product)
		}
		return product, err
	})
}

func crossedFirst(l side) bool {
	if len(l.batch) > 0 {
		return l.batch[0] == 0
	}
	return !slices.Contains(l.contracting, 0)
}

type side struct{ contracting, batch []int }

func (f *Function) dot(lhs *value, l side, rhs *value, r side, sum dtypes.DType) (*value, error) {
	if err := number.need(lhs, rhs); err != nil {
		return nil, err
	}
	if _, err := shapeinference.DotGeneral(shapeOf(lhs), l.contracting, l.batch, shapeOf(rhs), r.contracting, r.batch, compute.DotGeneralConfig{}); err != nil {
		return nil, err
	}
	if len(l.contracting) == 0 && len(l.batch) == lhs.Shape().Rank() && len(r.batch) == rhs.Shape().Rank() {
		// XLA's CPU folds such a dot of constants wrongly if axes are out of order.
		c := &chain{}
		in := func(v *value, order []int) *value {
			return c.convert(c.do(func() (*value, error) { return transpose(v, order) }), sum)
		}
		return c.two(stablehlo.Multiply, in(lhs, l.batch), in(rhs, r.batch)), c.err
	}
	if f.b.tpu && classes[sum]&integer != 0 && sum.Bits() == 64 {
		return f.dotAsProducts(lhs, l, rhs, r, sum)
	}
	if n := len(l.contracting); f.b.cpu && n > 1 && lhs.Shape().Size() >= fewElements && sideBySide(l.contracting) && sideBySide(r.contracting) && len(l.batch) == 0 && f.b.joins(lhs, rhs) {
		c := &chain{}
		lhs = c.do(func() (*value, error) { return joinAxes(lhs, l.contracting[0], n) })
		rhs = c.do(func() (*value, error) { return joinAxes(rhs, r.contracting[0], n) })
		if c.err != nil {
			return nil, c.err
		}
		return f.dot(lhs, side{l.contracting[:1], nil}, rhs, side{r.contracting[:1], nil}, sum)
	}
	if parts := partsOf(lhs, l, rhs, r); f.b.cpu && len(f.b.meshes) == 0 && parts > 1 {
		return f.dotByParts(lhs, l, rhs, parts)
	}
	if f.b.cpu && packsLess(lhs, l, rhs, r) {
		c := &chain{}
		product := c.do(stablehlo.DotGeneral(rhs, r.contracting, nil, lhs, l.contracting, nil).OutputDType(sum).Done)
		product = c.do(func() (*value, error) { return kept(product) }) // XLA would turn (y·xᵀ)ᵀ back into x·yᵀ
		return c.do(func() (*value, error) { return transpose(product, []int{1, 0}) }), c.err
	}
	return stablehlo.DotGeneral(lhs, l.contracting, l.batch, rhs, r.contracting, r.batch).OutputDType(sum).Done()
}

// TPUs have no dot of 64-bit integers.
func (f *Function) dotAsProducts(lhs *value, l side, rhs *value, r side, sum dtypes.DType) (*value, error) {
	rest := func(v *value, s side) (axes []int) {
		for axis := range v.Shape().Rank() {
			if !slices.Contains(s.batch, axis) && !slices.Contains(s.contracting, axis) {
				axes = append(axes, axis)
			}
		}
		return axes
	}
	c := &chain{}
	restL, restR := rest(lhs, l), rest(rhs, r)
	nb, nl, nr, nc := len(l.batch), len(restL), len(restR), len(l.contracting)
	var all []int // batch, rest of lhs, rest of rhs, contracting
	for _, of := range []struct {
		v    *value
		axes []int
	}{{lhs, l.batch}, {lhs, restL}, {rhs, restR}, {lhs, l.contracting}} {
		for _, axis := range of.axes {
			all = append(all, dims(of.v)[axis])
		}
	}
	spread := func(v *value, s side, rest []int, from int) *value {
		v = c.convert(v, sum)
		v = c.do(func() (*value, error) { return transpose(v, slices.Concat(s.batch, rest, s.contracting)) })
		var to []int
		for i := range nb {
			to = append(to, i)
		}
		for i := range rest {
			to = append(to, from+i)
		}
		for i := range nc {
			to = append(to, nb+nl+nr+i)
		}
		return c.do(func() (*value, error) { return stablehlo.BroadcastInDim(v, like(v, all...), to) })
	}
	products := c.two(stablehlo.Multiply, spread(lhs, l, restL, nb), spread(rhs, r, restR, nb+nl))
	if c.err != nil || nc == 0 {
		return products, c.err
	}
	over := make([]int, nc)
	for i := range over {
		over[i] = nb + nl + nr + i
	}
	return f.sum(products, over...)
}

func (f *Function) sum(v *value, axes ...int) (*value, error) {
	zero, add, err := f.function(sums, v)
	if err != nil {
		return nil, err
	}
	return stablehlo.Reduce(v, zero, add, axes...)
}

// partsOf returns how many sums make the product of one row with a large matrix, which XLA's CPU computes on one thread
// (docs/decisions/0036); else 1. It depends on the shapes alone: the sums are the same on all machines.
func partsOf(lhs *value, l side, rhs *value, r side) int {
	const most, large = 8, 1 << 19
	if rhs.Shape().Rank() != 2 || rhs.Shape().Size() < large || len(r.contracting) != 1 || r.contracting[0] != 0 || len(r.batch) > 0 ||
		lhs.Shape().Size() != dims(rhs)[0] || lhs.Shape().DType != dtypes.Float32 {
		return 1
	}
	for parts := most; parts > 1; parts /= 2 {
		if dims(rhs)[0]%parts == 0 {
			return parts
		}
	}
	return 1
}

func (f *Function) dotByParts(row *value, l side, matrix *value, parts int) (*value, error) {
	c := &chain{}
	terms, columns := dims(matrix)[0]/parts, dims(matrix)[1]
	x := c.do(func() (*value, error) { return stablehlo.Reshape(row, like(row, parts, terms)) })
	w := c.do(func() (*value, error) { return stablehlo.Reshape(matrix, like(matrix, parts, terms, columns)) })
	products := c.do(func() (*value, error) {
		return stablehlo.DotGeneral(x, []int{1}, []int{0}, w, []int{1}, []int{0}).Done()
	})
	sum := c.do(func() (*value, error) { return f.sum(products, 0) })
	to := append(slices.Delete(slices.Clone(dims(row)), l.contracting[0], l.contracting[0]+1), columns)
	return c.do(func() (*value, error) { return stablehlo.Reshape(sum, like(sum, to...)) }), c.err
}

// XLA's CPU is then faster with swapped operands and a transposed product (docs/decisions/0036).
func packsLess(lhs *value, l side, rhs *value, r side) bool {
	const longSum, longColumns, muchLarger, few = 128, 512, 4, 32
	if lhs.Shape().Rank() != 2 || rhs.Shape().Rank() != 2 || len(l.contracting) != 1 {
		return false
	}
	rows, columns := dims(lhs)[1-l.contracting[0]], dims(rhs)[1-r.contracting[0]]
	switch {
	case l.contracting[0] == 1 && r.contracting[0] == 1:
		return dims(lhs)[1] >= longSum && columns >= muchLarger*rows
	case l.contracting[0] == 0 && r.contracting[0] == 0:
		return columns > 1 && columns <= few && columns < rows ||
			columns > few && dims(lhs)[0] >= longColumns && rows >= muchLarger*columns
	}
	return false
}
