package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/xla"
)

// Cond runs onTrue or onFalse, by a bool scalar, and returns its results, of the same shapes and dtypes in both. The
// other function is not run and has gradient 0.
func Cond(condition *graph.Node, onTrue, onFalse func() []*graph.Node) []*graph.Node {
	if condition == nil || condition.DType() != dtypes.Bool || condition.Rank() != 0 {
		panic(fmt.Errorf("ops: cond: condition %s, expected a scalar of bool", autodiff.ShapeText(condition)))
	}
	return branch("cond", graph.ConvertDType(graph.LogicalNot(condition), dtypes.Int32), []func() []*graph.Node{onTrue, onFalse})
}

// Switch runs branches[number], for an integer scalar clamped to the valid range, and returns its results, of the
// same shapes and dtypes in all. The others are not run and have gradient 0.
func Switch(number *graph.Node, branches ...func() []*graph.Node) []*graph.Node {
	if number == nil || !number.DType().IsInt() || number.Rank() != 0 {
		panic(fmt.Errorf("ops: switch: number %s, expected a scalar of whole numbers", autodiff.ShapeText(number)))
	}
	if len(branches) == 0 {
		panic(fmt.Errorf("ops: switch: no function given"))
	}
	g, t, last := number.Graph(), number.DType(), float64(len(branches)-1)
	if t.Bits() < 32 {
		number, t = graph.ConvertDType(number, dtypes.Int32), dtypes.Int32
	}
	number = graph.Min(graph.Max(number, graph.Scalar(g, t, 0)), graph.Scalar(g, t, last))
	return branch("switch", graph.ConvertDType(number, dtypes.Int32), branches)
}

func branch(what string, number *graph.Node, branches []func() []*graph.Node) []*graph.Node {
	g := number.Graph()
	if xla.IsEager(g) {
		return eagerBranch(what, number, branches)
	}
	if !hasLoops(g) {
		panic(fmt.Errorf("ops: %s: the backend %q has no DynamicSlice: use one of XLA's plugins", what, g.Backend().Name()))
	}
	v := variablesOf(g, what)
	var first []*graph.Node
	functions, changes := make([]func() []*graph.Node, len(branches)), make([]map[*model.Variable][2]*graph.Node, len(branches))
	for i, f := range branches {
		if f == nil {
			panic(fmt.Errorf("ops: %s: function %d is nil", what, i))
		}
		functions[i] = func() []*graph.Node {
			out := slices.Clone(f())
			checkBranch(what, i, out, first)
			if i == 0 {
				first = out
			}
			changes[i] = v.taken()
			return out
		}
	}
	results := autodiff.Branch(number, functions, func(outputs [][]*graph.Node) [][]*graph.Node {
		for _, change := range changes {
			for of := range change {
				if !slices.Contains(v.sets, of) {
					v.sets = append(v.sets, of)
				}
			}
		}
		slices.SortFunc(v.sets, func(a, b *model.Variable) int { return strings.Compare(a.Path(), b.Path()) })
		for i := range outputs {
			for _, of := range v.sets {
				now := of.NodeValue(g)
				if c, ok := changes[i][of]; ok {
					now = c[1]
				}
				outputs[i] = append(outputs[i], now)
			}
		}
		return outputs
	})
	v.set(results[len(first):])
	return results[:len(first):len(first)]
}

func checkBranch(what string, i int, out, first []*graph.Node) {
	checkGiven(fmt.Sprintf("%s: function %d: result", what, i), out)
	if i == 0 {
		if len(out) == 0 {
			panic(fmt.Errorf("ops: %s: function 0 returns nothing", what))
		}
		return
	}
	if len(out) != len(first) {
		panic(fmt.Errorf("ops: %s: function %d returns %d results, the first one %d", what, i, len(out), len(first)))
	}
	for k, o := range out {
		if !o.Shape().Equal(first[k].Shape()) {
			panic(fmt.Errorf("ops: %s: function %d returns %s as result %d, the first one %s", what, i, o.Shape(), k, first[k].Shape()))
		}
	}
}

func eagerBranch(what string, number *graph.Node, branches []func() []*graph.Node) []*graph.Node {
	t, err := xla.Value(number)
	if err != nil {
		panic(fmt.Errorf("ops: %s: number: %w", what, err))
	}
	i := t.Value().(int32)
	if branches[i] == nil {
		panic(fmt.Errorf("ops: %s: function %d is nil", what, i))
	}
	out := slices.Clone(branches[i]())
	checkBranch(what, 0, out, nil)
	return out
}

func truth(what string, n *graph.Node) bool {
	t, err := xla.Value(n)
	if err != nil {
		panic(fmt.Errorf("ops: %s: condition: %w", what, err))
	}
	return t.Value().(bool)
}

// While repeats values = body(values) as long as condition(values), a bool scalar, is true, and returns them. It has
// no gradient; use [Scan] if the number of iterations has a bound. While the condition stays true, a context does not
// end the run; a second signal ends the process.
func While(condition func(values []*graph.Node) *graph.Node, body func(values []*graph.Node) []*graph.Node, values ...*graph.Node) []*graph.Node {
	if condition == nil || body == nil || len(values) == 0 || slices.Contains(values, nil) {
		panic(fmt.Errorf("ops: while: a condition, a body and at least one value are needed, and none may be nil"))
	}
	g := values[0].Graph()
	check := func(n *graph.Node) *graph.Node {
		if n == nil || n.DType() != dtypes.Bool || n.Rank() != 0 {
			panic(fmt.Errorf("ops: while: condition %s, expected a scalar of bool", autodiff.ShapeText(n)))
		}
		return n
	}
	turn := func(values []*graph.Node) []*graph.Node {
		next := body(slices.Clone(values))
		checkCarry("while", values, next)
		return next
	}
	values = slices.Clone(values)
	if xla.IsEager(g) {
		for i := 0; ; i++ {
			done := again(g, i)
			more := truth("while", check(condition(slices.Clone(values))))
			if more {
				values = turn(values)
			}
			if done(); !more {
				return values
			}
		}
	}
	v := variablesOf(g, "while")
	last := autodiff.While(g, values, func(values []*graph.Node) *graph.Node { return check(condition(slices.Clone(values))) }, turn, v.changed)
	v.set(last[len(values):])
	return last[:len(values)]
}
