package hlo

import (
	"slices"

	"github.com/gomlx/go-xla/stablehlo"
)

type parts struct {
	axis int
	list []part
}

type part struct {
	start int
	*value
}

func (p part) end(axis int) int { return p.start + dims(p.value)[axis] }

func (b *Builder) notePadded(v, x, fill *value, before, behind, between []int) {
	zero, known := b.zeros[fill]
	if !known || zero != 0 || b.eager != nil {
		return
	}
	axis := -1
	for i := range before {
		switch {
		case before[i] == 0 && behind[i] == 0 && between[i] == 0:
		case axis >= 0 || before[i] < 0 || behind[i] < 0 || between[i] > 0:
			return
		default:
			axis = i
		}
	}
	if axis >= 0 {
		b.padded[v] = parts{axis, []part{{before[axis], x}}}
	}
}

// A sum of arrays with disjoint nonzero parts, as a gradient of an LSTM's gates, is a concatenation.
func (f *Function) joined(lhs, rhs *value) (*value, error) {
	a, ok := f.b.padded[lhs]
	b, also := f.b.padded[rhs]
	if !ok || !also || a.axis != b.axis || !slices.Equal(dims(lhs), dims(rhs)) {
		return nil, nil
	}
	all := parts{a.axis, slices.Concat(a.list, b.list)}
	slices.SortFunc(all.list, func(p, q part) int { return p.start - q.start })
	at, c := 0, &chain{}
	var row []*value
	zeros := func(to int) {
		if to > at {
			shape := lhs.Shape().Clone()
			shape.Dimensions[all.axis] = to - at
			row = append(row, c.do(func() (*value, error) { return full(f.text, shape, 0) }))
		}
	}
	for _, p := range all.list {
		if p.start < at {
			return nil, nil
		}
		zeros(p.start)
		row, at = append(row, p.value), p.end(all.axis)
	}
	zeros(dims(lhs)[all.axis])
	sum := c.do(func() (*value, error) { return stablehlo.Concatenate(all.axis, row...) })
	if c.err == nil {
		f.b.padded[sum] = all
	}
	return sum, c.err
}
