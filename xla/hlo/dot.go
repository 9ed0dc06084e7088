package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/gomlx/backends"
)

// Dot multiplies vectors and matrices: the last axis of lhs with the first one of rhs.
func (b *Builder) Dot(lhs, rhs backends.Op) (backends.Op, error) {
	return b.emitOne(backends.OpTypeDot, []backends.Op{lhs, rhs}, func(v []*value) (*value, error) {
		l, r := v[0].Shape().Rank(), v[1].Shape().Rank()
		if l < 1 || l > 2 || r < 1 || r > 2 {
			return nil, fmt.Errorf("ranks %d and %d, expected vectors or matrices", l, r)
		}
		return b.dot(v[0], side{contracting: []int{l - 1}}, v[1], side{contracting: []int{0}})
	})
}

// DotGeneral multiplies and adds up over the contracting axes, pairs the batch axes, and crosses the rest. The output
// has the batch axes, then the rest of lhs, then the rest of rhs.
func (b *Builder) DotGeneral(
	lhs backends.Op, lhsContractingAxes, lhsBatchAxes []int,
	rhs backends.Op, rhsContractingAxes, rhsBatchAxes []int,
) (backends.Op, error) {
	return b.emitOne(backends.OpTypeDotGeneral, []backends.Op{lhs, rhs}, func(v []*value) (*value, error) {
		return b.dot(v[0], side{lhsContractingAxes, lhsBatchAxes}, v[1], side{rhsContractingAxes, rhsBatchAxes})
	})
}

// side is the part that the axes of one operand play; what is not named is crossed.
type side struct{ contracting, batch []int }

func (b *Builder) dot(lhs *value, l side, rhs *value, r side) (*value, error) {
	if err := number.need(lhs, rhs); err != nil {
		return nil, err
	}
	if err := sameType(lhs, rhs); err != nil {
		return nil, err
	}
	if err := checkAxes("axes of lhs", slices.Concat(l.batch, l.contracting), lhs.Shape().Rank()); err != nil {
		return nil, err
	}
	if err := checkAxes("axes of rhs", slices.Concat(r.batch, r.contracting), rhs.Shape().Rank()); err != nil {
		return nil, err
	}
	for _, pair := range []struct {
		name     string
		lhs, rhs []int
	}{{"contracting", l.contracting, r.contracting}, {"batch", l.batch, r.batch}} {
		if len(pair.lhs) != len(pair.rhs) {
			return nil, fmt.Errorf("%s axes %v and %v, expected as many in both", pair.name, pair.lhs, pair.rhs)
		}
		for i := range pair.lhs {
			if m, n := dims(lhs)[pair.lhs[i]], dims(rhs)[pair.rhs[i]]; m != n {
				return nil, fmt.Errorf("%s axes %v and %v have dimensions %d and %d at place %d, expected the same", pair.name, pair.lhs, pair.rhs, m, n, i)
			}
		}
	}
	if len(l.contracting) == 0 && len(l.batch) == lhs.Shape().Rank() && len(r.batch) == rhs.Shape().Rank() {
		// Nothing is added up or crossed. Of constants, XLA folds such a dot wrongly on the CPU if the axes are out of
		// order, and it is a plain product.
		lhs, err := transpose(lhs, l.batch)
		if err != nil {
			return nil, err
		}
		if rhs, err = transpose(rhs, r.batch); err != nil {
			return nil, err
		}
		return stablehlo.Multiply(lhs, rhs)
	}
	if b.cpu && packsLess(lhs, l, rhs, r) {
		product, err := stablehlo.DotGeneral(rhs, r.contracting, nil, lhs, l.contracting, nil).Done()
		if err != nil {
			return nil, err
		}
		if product, err = b.barrier(product); err != nil {
			return nil, err
		}
		return transpose(product, []int{1, 0})
	}
	return stablehlo.DotGeneral(lhs, l.contracting, l.batch, rhs, r.contracting, r.batch).Done()
}

// packsLess tells whether a product of two matrices runs faster on the CPU with its operands the other way round, and
// then transposed. Measured: docs/performance.md.
//
//   - x·yᵀ, as the gradient of a dense layer's input is. XLA copies the right operand into blocks before it multiplies, and
//     where the sum runs along its rows that copy jumps from row to row: for a layer of 512 by 512 and 128 examples it took
//     longer than the product. So the smaller operand should be the right one. The last transpose is worth it where the
//     sum is long.
//   - xᵀ·y, as the gradient of a dense layer's weights is, with few columns in y, as the last layer of a classifier has:
//     copying the columns of x takes 3 to 30 times as long as the product, most where their distance is a power of 2.
func packsLess(lhs *value, l side, rhs *value, r side) bool {
	const longSum, muchLarger, few = 128, 4, 32
	if lhs.Shape().Rank() != 2 || rhs.Shape().Rank() != 2 || len(l.contracting) != 1 {
		return false
	}
	rows, columns := dims(lhs)[1-l.contracting[0]], dims(rhs)[1-r.contracting[0]]
	switch {
	case l.contracting[0] == 1 && r.contracting[0] == 1:
		return dims(lhs)[1] >= longSum && columns >= muchLarger*rows
	case l.contracting[0] == 0 && r.contracting[0] == 0:
		return columns > 1 && columns <= few && columns < rows
	}
	return false
}

// optimizationBarrier is go-xla's number of the operation, for which it has no function.
const optimizationBarrier = 92

// barrier gives a value that XLA does not see through: it would turn (y·xᵀ)ᵀ back into x·yᵀ.
func (b *Builder) barrier(v *value) (*value, error) {
	result, err := stablehlo.Negate(v)
	if err != nil {
		return nil, err
	}
	b.main.Statements[len(b.main.Statements)-1].OpType = optimizationBarrier
	return result, nil
}
