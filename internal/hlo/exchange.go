package hlo

import (
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/stablehlo"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
)

// Reductions of 64-bit numbers over a sharded axis avoid all-reduces on GPUs (docs/decisions/0042). Each device reduces
// its part, gathers all results, and reduces them in the same order. CPUs' all-reduces are exact and faster; XLA
// rewrites those for TPUs.

type cuts []string

func (b *Builder) parts(c cuts) int {
	n := 1
	for _, name := range c {
		size, err := b.meshes[0].AxisSize(name)
		if err != nil {
			return 1
		}
		n *= size
	}
	return n
}

// keepCuts guesses by length which results keep a sharded first axis. A wrong guess does not change results: Shardy
// decides.
func (b *Builder) keepCuts(kind compute.OpType, operands, results []*value) {
	switch {
	case len(b.cut) == 0:
		return
	case kind == compute.OpTypeWhile: // a stack has another first axis
		for i, v := range operands {
			b.keepCut(v, results[i])
		}
		return
	case ownCuts[kind]:
		return
	}
	for _, v := range operands {
		c, divided := b.cut[v]
		if !divided {
			continue
		}
		for _, result := range results {
			if result.Shape().Rank() == 0 || result == v {
				continue
			}
			same := dims(result)[0] == dims(v)[0]
			if kind == compute.OpTypeReshape {
				same = dims(result)[0]%b.parts(c) == 0 // merged or split within a device
			}
			if same {
				b.cut[result] = c
			}
		}
	}
}

var ownCuts = map[compute.OpType]bool{compute.OpTypeDotGeneral: true, compute.OpTypeConvGeneral: true, compute.OpTypeTranspose: true}

func (b *Builder) keepCut(operand, result *value) {
	if c, divided := b.cut[operand]; divided && result != operand {
		b.cut[result] = c
	}
}

// joins reports whether axes may be merged. A merge loses the sharding of all but the first axis: all devices get all
// examples. In a scan the examples are on the second axis.
func (b *Builder) joins(values ...*value) bool {
	return len(b.meshes) == 0 || slices.ContainsFunc(values, func(v *value) bool { return b.cut[v] != nil })
}

func (f *Function) exchanged(v *value) (cuts, bool) {
	t := v.Shape().DType
	c, divided := f.b.cut[v]
	divided = divided && f.b.gpu && f == f.b.main && t.Bits() == 64 && classes[t]&real != 0
	return c, divided && v.Shape().Size() > 0 && dims(v)[0]%f.b.parts(c) == 0
}

func (f *Function) apart(v *value, c cuts) (*value, error) {
	n := f.b.parts(c)
	apart, err := stablehlo.Reshape(v, like(v, slices.Concat([]int{n, dims(v)[0] / n}, dims(v)[1:])...))
	if err == nil {
		f.divide(apart, c)
	}
	return apart, err
}

func behindParts(axes []int) []int {
	moved := make([]int, len(axes))
	for i, axis := range axes {
		moved[i] = axis + 1
	}
	return moved
}

func (f *Function) reduceParts(rule reduction, v *value, c cuts, over []int) (*value, error) {
	k := &chain{}
	v = k.do(func() (*value, error) { return f.apart(v, c) })
	v = k.do(func() (*value, error) {
		neutral, join, err := f.function(rule, v)
		if err != nil {
			return nil, err
		}
		return f.reduceOver(v, neutral, join, behindParts(over))
	})
	return f.reduceExchanged(k, rule, v, c)
}

func (f *Function) reduceExchanged(k *chain, rule reduction, v *value, c cuts) (*value, error) {
	v = k.do(func() (*value, error) { return f.everywhere(v, c) })
	return k.do(func() (*value, error) {
		neutral, join, err := f.function(rule, v)
		if err != nil {
			return nil, err
		}
		return stablehlo.Reduce(v, neutral, join, 0)
	}), k.err
}

func (f *Function) scatterParts(
	rule reduction, operand, indices, updates *value, c cuts, vectorAxis int, windowAxes, insertedAxes, indexedAxes []int,
) (*value, error) {
	k := &chain{}
	indices = k.do(func() (*value, error) { return f.apart(indices, c) })
	updates = k.do(func() (*value, error) { return f.apart(updates, c) })
	none := k.do(func() (*value, error) {
		return full(f.text, like(operand, append([]int{f.b.parts(c)}, dims(operand)...)...), rule.neutral(operand.Shape().DType))
	})
	all := k.do(func() (*value, error) {
		_, join, err := f.function(rule, none)
		if err != nil {
			return nil, err
		}
		all, err := stablehlo.Scatter(none, indices, updates, behindParts(windowAxes), slices.Sorted(slices.Values(behindParts(insertedAxes))),
			[]int{0}, []int{0}, behindParts(indexedAxes), vectorAxis+1, false, false, join)
		if err == nil {
			f.divide(all, c)
		}
		return all, err
	})
	sum, err := f.reduceExchanged(k, rule, all, c)
	if err != nil {
		return nil, err
	}
	return rule.join(operand, sum)
}

func (f *Function) everywhere(v *value, c cuts) (*value, error) {
	f.divide(v, c)
	same, err := stablehlo.CustomCallV2("Sharding", "", []*value{v}, nil, []xlashapes.Shape{v.Shape()}, nil)
	if err != nil {
		return nil, err
	}
	f.divide(same[0], nil)
	return same[0], nil
}

// A nil c replicates.
func (f *Function) divide(v *value, c cuts) {
	axes := slices.Repeat([]string{"{}"}, v.Shape().Rank())
	if len(c) > 0 {
		axes[0] = `{"` + strings.Join(c, `", "`) + `"}`
	}
	for _, s := range slices.Backward(f.text.Statements) {
		if len(s.Outputs) == 1 && s.Outputs[0] == v {
			if s.Attributes == nil {
				s.Attributes = map[string]any{}
			}
			s.Attributes["sdy.sharding"] = attribute("#sdy.sharding_per_value<[<@" + f.b.meshes[0].Name() + ", [" + strings.Join(axes, ", ") + "]>]>")
			return
		}
	}
}
