package nn

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/xla/ops"
)

// Recurrent has the settings of [LSTM], [GRU] and [SimpleRNN], which iterate over a sequence's places.
type Recurrent struct {
	Units int
	// Layers is the number of layers, 1 if 0.
	Layers int
	// Bidirectional runs both directions, with separate weights, and concatenates their states.
	Bidirectional bool
	// Last returns only the state after the last place, [batch, units].
	Last bool
	// Mask selects the places: lengths, integers [batch], or bool [batch, places]; if nil, [MaskOf] the input. At
	// masked places the state does not change and the output is 0.
	Mask *graph.Node
	// Initial has the initial states, as ApplyStates returns. 0 if nil.
	Initial []*graph.Node
	// Dropout is the rate between layers, RecurrentDropout the state's before the recurrent products, with one mask
	// for all places.
	Dropout, RecurrentDropout float64
	// ResetBefore makes a GRU reset the state before the candidate's product, (r·h)·U, with one bias [3·units] (Cho et
	// al. 2014).
	ResetBefore     bool
	NoBias          bool
	Kernel          model.VariableInitializer // "glorot_uniform" if nil
	RecurrentKernel model.VariableInitializer // "orthogonal" if nil
}

// LSTM is a long short-term memory layer (Hochreiter and Schmidhuber 1997), with forget gates whose biases start at 1.
type LSTM Recurrent

// GRU is a gated recurrent unit layer (Cho et al. 2014). It resets after the product, r·(h·U + b), as cuDNN, without
// ResetBefore.
type GRU Recurrent

// SimpleRNN computes tanh(x·kernel + h·recurrent_kernel + bias).
type SimpleRNN Recurrent

// Apply returns the outputs for [batch, places, n]: [batch, places, units], or twice the units if Bidirectional; with
// Last without places.
//
// The variables are kernel [n, 4·units], recurrent_kernel [units, 4·units] and bias [4·units], in the order input gate,
// forget gate, candidate, output gate. With Layers they are in layer_0, layer_1, …, with Bidirectional in forward and
// backward.
func (l LSTM) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(l, scope, x) }

// ApplyStates also returns the states after the last place, each [batch, units]: h and c for each layer and direction.
func (l LSTM) ApplyStates(scope *model.Scope, x *graph.Node) (outputs *graph.Node, states []*graph.Node) {
	return withStates(l, l.states, scope, x)
}

func (l LSTM) build(scope *model.Scope, x *graph.Node) *graph.Node {
	y, _ := l.states(scope, x)
	return y
}

func (l LSTM) states(scope *model.Scope, x *graph.Node) (outputs *graph.Node, states []*graph.Node) {
	Recurrent(l).noReset("LSTM", scope)
	return Recurrent(l).apply("LSTM", scope, x, cell{gates: 4, biases: 1, states: 2, bias: forgetOne, turn: lstm})
}

// Apply is as [LSTM.Apply], with kernel [n, 3·units], recurrent_kernel [units, 3·units] and bias [2, 3·units] (the
// input's and the state's), or [3·units] with ResetBefore, in the order update gate, reset gate, candidate.
func (u GRU) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(u, scope, x) }

// ApplyStates also returns the state after the last place, [batch, units], for each layer and direction.
func (u GRU) ApplyStates(scope *model.Scope, x *graph.Node) (outputs *graph.Node, states []*graph.Node) {
	return withStates(u, u.states, scope, x)
}

func (u GRU) build(scope *model.Scope, x *graph.Node) *graph.Node {
	y, _ := u.states(scope, x)
	return y
}

func (u GRU) states(scope *model.Scope, x *graph.Node) (outputs *graph.Node, states []*graph.Node) {
	if u.ResetBefore {
		return Recurrent(u).apply("GRU", scope, x, cell{gates: 3, biases: 1, states: 1, bias: graph.Zeros, turn: gruResetBefore})
	}
	return Recurrent(u).apply("GRU", scope, x, cell{gates: 3, biases: 2, states: 1, bias: graph.Zeros, turn: gru})
}

// Apply is as [LSTM.Apply], with kernel [n, units], recurrent_kernel [units, units] and bias [units].
func (r SimpleRNN) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(r, scope, x) }

// ApplyStates is as [GRU.ApplyStates].
func (r SimpleRNN) ApplyStates(scope *model.Scope, x *graph.Node) (outputs *graph.Node, states []*graph.Node) {
	return withStates(r, r.states, scope, x)
}

func (r SimpleRNN) build(scope *model.Scope, x *graph.Node) *graph.Node {
	y, _ := r.states(scope, x)
	return y
}

func (r SimpleRNN) states(scope *model.Scope, x *graph.Node) (outputs *graph.Node, states []*graph.Node) {
	Recurrent(r).noReset("SimpleRNN", scope)
	return Recurrent(r).apply("SimpleRNN", scope, x, cell{gates: 1, biases: 1, states: 1, bias: graph.Zeros, turn: simple})
}

func withStates(l builtIn, build func(scope *model.Scope, x *graph.Node) (*graph.Node, []*graph.Node), scope *model.Scope, x *graph.Node) (outputs *graph.Node, states []*graph.Node) {
	outputs = layering.Run(l, false, false, scope, x, func(scope *model.Scope, x *graph.Node) (y *graph.Node) {
		y, states = build(scope, x)
		return y
	})
	return outputs, states
}

func (r Recurrent) noReset(layer string, scope *model.Scope) {
	if r.ResetBefore {
		fail(layer, scope, "ResetBefore is only for a GRU")
	}
}

// cell computes one place from the input's contribution, [batch, gates·units], from times (a state's product with the
// kernels of gates first to end-1), and the states.
type cell struct {
	gates, biases, states int
	bias                  model.VariableInitializer
	turn                  func(in *graph.Node, times func(h *graph.Node, first, end int) *graph.Node, states []*graph.Node) []*graph.Node
}

func forgetOne(g *graph.Graph, shape shapes.Shape) *graph.Node {
	units := shape.Dimensions[0] / 4
	part := func(n int) shapes.Shape { return shapes.Make(shape.DType, n) }
	return graph.Concatenate([]*graph.Node{graph.Zeros(g, part(units)), graph.Ones(g, part(units)), graph.Zeros(g, part(2*units))}, 0)
}

func gate(v, like *graph.Node, i int) *graph.Node {
	units := like.Shape().Dimensions[1]
	return graph.Slice(v, graph.AxisRange(), graph.AxisRange(i*units, (i+1)*units))
}

func lstm(in *graph.Node, times func(h *graph.Node, first, end int) *graph.Node, states []*graph.Node) []*graph.Node {
	h, c := states[0], states[1]
	z := graph.Add(in, times(h, 0, 4))
	c = graph.Add(graph.Mul(graph.Sigmoid(gate(z, h, 1)), c), graph.Mul(graph.Sigmoid(gate(z, h, 0)), graph.Tanh(gate(z, h, 2))))
	return []*graph.Node{graph.Mul(graph.Sigmoid(gate(z, h, 3)), graph.Tanh(c)), c}
}

func gru(in *graph.Node, times func(h *graph.Node, first, end int) *graph.Node, states []*graph.Node) []*graph.Node {
	h := states[0]
	back := times(h, 0, 3)
	open := func(i int) *graph.Node { return graph.Sigmoid(graph.Add(gate(in, h, i), gate(back, h, i))) }
	keep := open(0)
	candidate := graph.Tanh(graph.Add(gate(in, h, 2), graph.Mul(open(1), gate(back, h, 2))))
	return []*graph.Node{graph.Add(graph.Mul(keep, h), graph.Mul(graph.OneMinus(keep), candidate))}
}

func gruResetBefore(in *graph.Node, times func(h *graph.Node, first, end int) *graph.Node, states []*graph.Node) []*graph.Node {
	h := states[0]
	back := times(h, 0, 2)
	open := func(i int) *graph.Node { return graph.Sigmoid(graph.Add(gate(in, h, i), gate(back, h, i))) }
	keep := open(0)
	candidate := graph.Tanh(graph.Add(gate(in, h, 2), times(graph.Mul(open(1), h), 2, 3)))
	return []*graph.Node{graph.Add(graph.Mul(keep, h), graph.Mul(graph.OneMinus(keep), candidate))}
}

func simple(in *graph.Node, times func(h *graph.Node, first, end int) *graph.Node, states []*graph.Node) []*graph.Node {
	return []*graph.Node{graph.Tanh(graph.Add(in, times(states[0], 0, 1)))}
}

func (r Recurrent) apply(layer string, scope *model.Scope, x *graph.Node, c cell) (outputs *graph.Node, states []*graph.Node) {
	sequence(layer, scope, x)
	atLeastOne(layer, scope, "Units", r.Units)
	checkRate(layer, scope, r.Dropout)
	checkRate(layer, scope, r.RecurrentDropout)
	depth, directions := max(r.Layers, 1), 1
	if r.Bidirectional {
		directions = 2
	}
	batch, places := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	if n := depth * directions * c.states; r.Initial != nil && len(r.Initial) != n {
		fail(layer, scope, "Initial has %d states, expected %d", len(r.Initial), n)
	}
	var mask []*graph.Node
	if r.Mask == nil {
		r.Mask = MaskOf(x)
	}
	if r.Mask != nil {
		mask = []*graph.Node{graph.TransposeAllAxes(placesMask(layer, scope, r.Mask, batch, places), 1, 0)}
	}
	x = graph.TransposeAllAxes(x, 1, 0, 2)
	for i := range depth {
		at := scope
		if depth > 1 {
			at = scope.In("layer_%d", i)
		}
		top := i == depth-1
		var outs, ends []*graph.Node
		for d := range directions {
			s := at
			if directions > 1 {
				s = at.In("%s", [...]string{"forward", "backward"}[d])
			}
			initial := make([]*graph.Node, c.states)
			for k := range initial {
				shape := shapes.Make(x.DType(), batch, r.Units)
				if r.Initial == nil {
					initial[k] = graph.Zeros(x.Graph(), shape)
				} else if initial[k] = r.Initial[len(states)+k]; !initial[k].Shape().Equal(shape) {
					fail(layer, scope, "state %d of Initial is %s, expected %s", len(states)+k, initial[k].Shape(), shape)
				}
			}
			last, out := r.scan(s, x, mask, initial, c, d == 1, top && r.Last)
			outs, ends, states = append(outs, out...), append(ends, last[0]), append(states, last...)
		}
		if top && r.Last {
			return graph.Concatenate(ends, -1), states
		}
		x = graph.Concatenate(outs, -1)
		if !top {
			x = layers.DropoutStatic(scope, x, r.Dropout)
		}
	}
	return graph.TransposeAllAxes(x, 1, 0, 2), states
}

// scan iterates over [places, batch, n]. One product computes all places' input contribution.
func (r Recurrent) scan(scope *model.Scope, x *graph.Node, mask, initial []*graph.Node, c cell, back, last bool) (states, outs []*graph.Node) {
	dims, wide := x.Shape().Dimensions, c.gates*r.Units
	kernel := variable(scope, x, "kernel", r.Kernel, glorotUniform, dims[2], wide)
	recurrent := variable(scope, x, "recurrent_kernel", r.RecurrentKernel, orthogonal, r.Units, wide)
	// Places and examples stay separate axes, to be sharded.
	in := graph.Dot(x, kernel).General([]int{2}, nil, []int{0}, nil)
	var added, bias *graph.Node // to the input's and the state's contribution
	if !r.NoBias {
		if c.biases == 1 {
			added = graph.ExpandAxes(variable(scope, x, "bias", nil, c.bias, wide), 0)
		} else {
			both := variable(scope, x, "bias", nil, c.bias, c.biases, wide)
			added = graph.Slice(both, graph.AxisElem(0))
			bias = graph.BroadcastToDims(graph.Slice(both, graph.AxisElem(1)), dims[1], wide)
		}
		// The loop adds it: the sum would be a second array. The gradient is that of the sum.
		in = autodiff.Instead(in, graph.Add(in, graph.ExpandAxes(added, 0)))
		added = graph.StopGradient(graph.BroadcastToDims(added, dims[1], wide))
	}
	var drop *graph.Node
	if r.RecurrentDropout > 0 && layers.IsDropoutActive(scope, x.Graph()) {
		drop = layers.DropoutStatic(scope, graph.OnesLike(initial[0]), r.RecurrentDropout)
	}
	var options []ops.Option
	if back {
		options = append(options, ops.Reverse())
	}
	return ops.Scan(initial, append([]*graph.Node{in}, mask...), func(carry, at []*graph.Node) (next, out []*graph.Node) {
		in := at[0]
		if added != nil {
			in = graph.Add(in, added)
		}
		next = c.turn(in, func(h *graph.Node, first, end int) *graph.Node {
			if drop != nil {
				h = graph.Mul(h, drop)
			}
			kernel := recurrent
			if end-first < c.gates {
				kernel = graph.Slice(kernel, graph.AxisRange(), graph.AxisRange(first*r.Units, end*r.Units))
			}
			product := graph.Dot(h, kernel).Product()
			if bias != nil {
				product = graph.Add(product, bias)
			}
			return product
		}, carry)
		out = slices.Clone(next[:1])
		if len(mask) > 0 {
			here := graph.BroadcastToDims(graph.ExpandAxes(at[1], -1), dims[1], r.Units)
			for i := range next {
				next[i] = graph.Where(here, next[i], carry[i])
			}
			out[0] = graph.Where(here, out[0], graph.ZerosLike(out[0]))
		}
		if last {
			out = nil
		}
		return next, out
	}, options...)
}
