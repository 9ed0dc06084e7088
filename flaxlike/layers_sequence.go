package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/ml/context/initializers"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/lstm"

	"github.com/lazo-ml/lazo/managed"
)

// Attention is GoMLX's layers.MultiHeadAttention of a sequence with itself: [batch, time, n] to [batch, time, n]. For masks,
// write a [Layer] with GoMLX's builder.
func Attention(heads, width int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		return attention("Attention", vars, x, heads, width).Done()
	}
}

// CausalAttention is [Attention] in which each place sees itself and those before it.
func CausalAttention(heads, width int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		return attention("CausalAttention", vars, x, heads, width).UseCausalMask().Done()
	}
}

func attention(layer string, vars *managed.Vars, x *managed.Node, heads, width int) *layers.MultiHeadAttentionBuilder {
	sequence(layer, vars, x)
	return layers.MultiHeadAttention(vars, x, x, x, heads, width).SetOutputDim(x.Shape().Dimensions[2])
}

// PositionEmbedding adds a vector to each place, so that their order is known: [batch, time, n] to [batch, time, n], for up to length
// places.
func PositionEmbedding(length int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		sequence("PositionEmbedding", vars, x)
		time, width := x.Shape().Dimensions[1], x.Shape().Dimensions[2]
		if time > length {
			panic(fmt.Errorf("PositionEmbedding in %s: the input is %s, expected at most %d places in its second axis", vars.Scope(), x.Shape(), length))
		}
		table := vars.VariableWithShape("embeddings", shapes.Make(x.DType(), length, width)).ValueGraph(x.Graph())
		return graph.Add(x, graph.ExpandAxes(graph.Slice(table, graph.AxisRangeFromStart(time)), 0))
	}
}

// TimeDistributed is a layer for each place of a sequence, with the same variables: [batch, time, …] to [batch, time, …].
func TimeDistributed(layer Layer) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		if x.Rank() < 2 {
			panic(fmt.Errorf("TimeDistributed in %s: the input is %s, expected [batch, time, …]", vars.Scope(), x.Shape()))
		}
		dims := x.Shape().Dimensions
		y := traced(layer, vars, graph.Reshape(x, append([]int{dims[0] * dims[1]}, dims[2:]...)...))
		return graph.Reshape(y, append([]int{dims[0], dims[1]}, y.Shape().Dimensions[1:]...)...)
	}
}

// LSTM is the last hidden state of GoMLX's lstm: [batch, time, n] to [batch, units].
func LSTM(units int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		sequence("LSTM", vars, x)
		_, last, _ := lstm.New(vars, x, units).Done()
		return graph.Squeeze(last, 0)
	}
}

// GRU is the last state of gated recurrent units (Cho et al. 2014), reset behind the product as in cuDNN and Keras: [batch, time, n] to
// [batch, units]. Each place is a part of the program, as in GoMLX's lstm, so a long sequence takes long to compile.
func GRU(units int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		sequence("GRU", vars, x)
		g, dims := x.Graph(), x.Shape().Dimensions
		weights := func(name string, dims ...int) *managed.Node {
			return vars.VariableWithShape(name, shapes.Make(x.DType(), dims...)).ValueGraph(g)
		}
		// The update gate, the reset gate and the candidate side by side.
		kernel, recurrent := weights("weights", dims[2], 3*units), weights("recurrent", units, 3*units)
		biases := vars.WithInitializer(initializers.Zero).VariableWithShape("biases", shapes.Make(x.DType(), 2, 3*units)).ValueGraph(g)
		bias := func(i int) *managed.Node { return graph.Slice(biases, graph.AxisElem(i)) }
		part := func(v *managed.Node, i int) *managed.Node {
			return graph.Slice(v, graph.AxisRange(), graph.AxisRange(i*units, (i+1)*units))
		}
		in := graph.Reshape(graph.Dot(graph.Reshape(x, dims[0]*dims[1], dims[2]), kernel), dims[0], dims[1], 3*units)
		h := graph.Zeros(g, shapes.Make(x.DType(), dims[0], units))
		for at := range dims[1] {
			now := graph.Add(graph.Squeeze(graph.Slice(in, graph.AxisRange(), graph.AxisElem(at)), 1), bias(0))
			before := graph.Add(graph.Dot(h, recurrent), bias(1))
			gate := func(i int) *managed.Node { return graph.Sigmoid(graph.Add(part(now, i), part(before, i))) }
			keep := gate(0)
			candidate := graph.Tanh(graph.Add(part(now, 2), graph.Mul(gate(1), part(before, 2))))
			h = graph.Add(graph.Mul(keep, h), graph.Mul(graph.OneMinus(keep), candidate))
		}
		return h
	}
}

func sequence(layer string, vars *managed.Vars, x *managed.Node) {
	if x.Rank() != 3 {
		panic(fmt.Errorf("%s in %s: the input is %s, expected [batch, time, n]: see Reshape and Embedding", layer, vars.Scope(), x.Shape()))
	}
}
