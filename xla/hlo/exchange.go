package hlo

import (
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/stablehlo"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
	"github.com/gomlx/go-xla/types/shardy"
)

// Numbers of 64 bits, as metrics gather them, are not to be reduced on their way between GPUs: version 0.12.0.1 of the
// CUDA plugin was seen to end the process on an all-reduce of them over 64 devices. So where Shardy divides the work,
// what is reduced over the axis of the batch is written in two: each device reduces what it has, the results are
// gathered, which only moves bytes, and each device reduces them in one order. On the CPU an all-reduce is exact and
// faster, and XLA itself makes this of one for a TPU, where a float64 is two float32.

// cuts are the axes of the mesh along which a value's first axis is divided.
type cuts []string

// parts is into how many the first axis is divided.
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

// cutBy notes how a parameter's first axis is divided.
func (b *Builder) cutBy(split *shardy.ShardingSpec, v *value) {
	if split == nil || len(split.Axes) == 0 || len(b.meshes) != 1 || v.Shape().Rank() == 0 {
		return
	}
	var c cuts
	for _, axis := range split.Axes[0].MeshAxes {
		c = append(c, axis.AxisName)
	}
	if b.parts(c) > 1 {
		b.cut[v] = c
	}
}

// keepCuts notes which results of an operation have the first axis of an operand that is divided, by its length. It is
// a guess that need not be right: Shardy decides, and a wrong guess costs an exchange or leaves one to XLA.
func (b *Builder) keepCuts(kind compute.OpType, operands, results []*value) {
	switch {
	case len(b.cut) == 0:
		return
	case kind == compute.OpTypeWhile: // each result is what became of its operand: a stack of places has another first axis
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
				same = dims(result)[0]%b.parts(c) == 0 // examples split up or joined, each device's for themselves
			}
			if same {
				b.cut[result] = c
			}
		}
	}
}

// ownCuts are the operations that keep cuts themselves, as they know which axis of the result is the operand's first
// one.
var ownCuts = map[compute.OpType]bool{compute.OpTypeDotGeneral: true, compute.OpTypeConvGeneral: true, compute.OpTypeTranspose: true}

// keepCut notes that the first axis of a result is that of an operand.
func (b *Builder) keepCut(operand, result *value) {
	if c, divided := b.cut[operand]; divided && result != operand {
		b.cut[result] = c
	}
}

// joins tells whether axes of the values may be made one: a division along the first axis stays one, and one along any
// other is given up, so that all devices get all examples. In a loop over places the axis of the examples is the second
// one, and nothing is known of it.
func (b *Builder) joins(values ...*value) bool {
	return len(b.meshes) == 0 || slices.ContainsFunc(values, func(v *value) bool { return b.cut[v] != nil })
}

// exchanged tells how a value's first axis is divided, if what is reduced over it is to be gathered.
func (f *Function) exchanged(v *value) (cuts, bool) {
	t := v.Shape().DType
	c, divided := f.b.cut[v]
	divided = divided && f.b.gpu && f == f.b.main && t.Bits() == 64 && classes[t]&real != 0
	return c, divided && v.Shape().Size() > 0 && dims(v)[0]%f.b.parts(c) == 0
}

// apart gives a value of [parts, …, …]: the part of each device on an axis of its own.
func (f *Function) apart(v *value, c cuts) (*value, error) {
	n := f.b.parts(c)
	apart, err := stablehlo.Reshape(v, like(v, slices.Concat([]int{n, dims(v)[0] / n}, dims(v)[1:])...))
	if err == nil {
		f.divide(apart, c)
	}
	return apart, err
}

// behindParts are axes where the parts stand in front of them.
func behindParts(axes []int) []int {
	moved := make([]int, len(axes))
	for i, axis := range axes {
		moved[i] = axis + 1
	}
	return moved
}

// reduceParts reduces over axes of which the first is divided.
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

// reduceExchanged reduces what each device has, [parts, …], to what all have.
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

// scatterParts has each device scatter its updates to places of its own, which are then reduced.
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

// everywhere gives each device all of a value whose first axis is divided.
func (f *Function) everywhere(v *value, c cuts) (*value, error) {
	f.divide(v, c)
	same, err := stablehlo.CustomCallV2("Sharding", "", []*value{v}, nil, []xlashapes.Shape{v.Shape()}, nil)
	if err != nil {
		return nil, err
	}
	f.divide(same[0], nil)
	return same[0], nil
}

// divide says how the result of the statement that was written last for v is divided along its first axis; nil: it is
// whole on each device.
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
