package flaxlike

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/layers/lstm"
	"github.com/gomlx/gomlx/ml/model/initializer"

	"github.com/lazo-ml/lazo/managed"
)

// Attention is GoMLX's attention.SelfAttention of a sequence with itself: [batch, time, n] to [batch, time, n]. For
// masks, write a [Layer] with GoMLX's builder.
func Attention(heads, width int) Layer { return selfAttention("Attention", heads, width, false) }

// CausalAttention is [Attention] in which each place sees itself and those before it.
func CausalAttention(heads, width int) Layer {
	return selfAttention("CausalAttention", heads, width, true)
}

func selfAttention(layer string, heads, width int, causal bool) Layer {
	return part(layer, func(scope *managed.Scope, x *managed.Node) *managed.Node {
		atLeastOne(layer, "heads", heads)
		atLeastOne(layer, "width", width)
		sequence(layer, scope, x)
		return attention.SelfAttention(scope, x, heads, width).WithCausalMask(causal).Done()
	})
}

// PositionEmbedding adds a vector to each place, so that their order is known: [batch, time, n] to [batch, time, n],
// for up to length places.
func PositionEmbedding(length int) Layer {
	return part("PositionEmbedding", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		atLeastOne("PositionEmbedding", "length", length)
		sequence("PositionEmbedding", scope, x)
		time, width := x.Shape().Dimensions[1], x.Shape().Dimensions[2]
		if time > length {
			panic(fmt.Errorf("PositionEmbedding in %s: the input is %s, expected at most %d places in its second axis", scope.Scope(), x.Shape(), length))
		}
		table := scope.VariableWithShape("embeddings", shapes.Make(x.DType(), length, width)).NodeValue(x.Graph())
		return graph.Add(x, graph.ExpandAxes(graph.Slice(table, graph.AxisRangeFromStart(time)), 0))
	})
}

// TimeDistributed is a layer for each place of a sequence, with the same variables: [batch, time, n…] to [batch, time,
// …]. Of [batch, time] it takes integers alone, as for an [Embedding].
func TimeDistributed(layer Layer) Layer {
	return part("TimeDistributed", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		if x.Rank() < 2 || x.Rank() == 2 && x.DType().IsFloat() {
			panic(fmt.Errorf("TimeDistributed in %s: the input is %s, expected [batch, time, n] or more axes: see Reshape and Embedding", scope.Scope(), x.Shape()))
		}
		dims := x.Shape().Dimensions
		y := traced(layer, scope, graph.Reshape(x, append([]int{dims[0] * dims[1]}, dims[2:]...)...))
		if y.Rank() == 0 || y.Shape().Dimensions[0] != dims[0]*dims[1] {
			panic(fmt.Errorf("TimeDistributed in %s: the layer makes %s of %d places, expected a row for each, [%[3]d, …]", scope.Scope(), y.Shape(), dims[0]*dims[1]))
		}
		return graph.Reshape(y, append([]int{dims[0], dims[1]}, y.Shape().Dimensions[1:]...)...)
	})
}

// LSTM is the last hidden state of GoMLX's lstm: [batch, time, n] to [batch, units]. Each place is a part of the
// program, so a long sequence takes long to compile. Its biases begin with the deviation 0.5, its weights with
// 1/√(2·units) whatever n is.
func LSTM(units int) Layer {
	return part("LSTM", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		atLeastOne("LSTM", "units", units)
		sequence("LSTM", scope, x)
		_, last, _ := lstm.New(scope, x, units).Done()
		return graph.Squeeze(last, 0)
	})
}

// GRU is the last state of gated recurrent units (Cho et al. 2014), reset behind the product as in cuDNN: [batch, time,
// n] to [batch, units]. Each place is a part of the program, as in [LSTM].
func GRU(units int) Layer {
	return part("GRU", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		atLeastOne("GRU", "units", units)
		sequence("GRU", scope, x)
		g, dims := x.Graph(), x.Shape().Dimensions
		weights := func(name string, dims ...int) *managed.Node {
			return scope.VariableWithShape(name, shapes.Make(x.DType(), dims...)).NodeValue(g)
		}
		// The update gate, the reset gate and the candidate side by side.
		kernel, recurrent := weights("weights", dims[2], 3*units), weights("recurrent", units, 3*units)
		biases := scope.WithInitializer(initializer.Zero).VariableWithShape("biases", shapes.Make(x.DType(), 2, 3*units)).NodeValue(g)
		bias := func(i int) *managed.Node { return graph.Slice(biases, graph.AxisElem(i)) }
		part := func(v *managed.Node, i int) *managed.Node {
			return graph.Slice(v, graph.AxisRange(), graph.AxisRange(i*units, (i+1)*units))
		}
		in := graph.Reshape(graph.DotProduct(graph.Reshape(x, dims[0]*dims[1], dims[2]), kernel), dims[0], dims[1], 3*units)
		h := graph.Zeros(g, shapes.Make(x.DType(), dims[0], units))
		for at := range dims[1] {
			now := graph.Add(graph.Squeeze(graph.Slice(in, graph.AxisRange(), graph.AxisElem(at)), 1), bias(0))
			before := graph.Add(graph.DotProduct(h, recurrent), bias(1))
			gate := func(i int) *managed.Node { return graph.Sigmoid(graph.Add(part(now, i), part(before, i))) }
			keep := gate(0)
			candidate := graph.Tanh(graph.Add(part(now, 2), graph.Mul(gate(1), part(before, 2))))
			h = graph.Add(graph.Mul(keep, h), graph.Mul(graph.OneMinus(keep), candidate))
		}
		return h
	})
}

func sequence(layer string, scope *managed.Scope, x *managed.Node) {
	if x.Rank() != 3 {
		panic(fmt.Errorf("%s in %s: the input is %s, expected [batch, time, n]: see Reshape and Embedding", layer, scope.Scope(), x.Shape()))
	}
}
