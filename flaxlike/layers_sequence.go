package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Attention is nn.Attention of a sequence with itself: [batch, places, n] to [batch, places, n].
func Attention(heads, width int) Layer { return Of(nn.Attention{Heads: heads, Width: width}) }

// CausalAttention is [Attention] in which each place sees itself and those before it.
func CausalAttention(heads, width int) Layer {
	return of("CausalAttention", nn.Attention{Heads: heads, Width: width, Causal: true})
}

// PositionEmbedding is nn.Positions, which adds a vector to each place, so that their order is known: [batch, places,
// n] to [batch, places, n], for up to length places.
func PositionEmbedding(length int) Layer {
	return of("PositionEmbedding", nn.Positions{Length: length})
}

// LSTM is the last state of nn.LSTM: [batch, places, n] to [batch, units]. Those of all places, both directions and
// more: [Of].
func LSTM(units int) Layer { return Of(nn.LSTM{Units: units, Last: true}) }

// GRU is the last state of nn.GRU: [batch, places, n] to [batch, units]. Those of all places, both directions and more:
// [Of].
func GRU(units int) Layer { return Of(nn.GRU{Units: units, Last: true}) }

// SimpleRNN is the last state of nn.SimpleRNN: [batch, places, n] to [batch, units]. Those of all places, both
// directions and more: [Of].
func SimpleRNN(units int) Layer { return Of(nn.SimpleRNN{Units: units, Last: true}) }

// TimeDistributed is a layer for each place of a sequence, with the same variables: [batch, time, n…] to [batch, time,
// …]. Of [batch, time] it takes integers alone, as for an [Embedding].
func TimeDistributed(layer Layer) Layer { return made("TimeDistributed", timeDistributed{layer}) }

type timeDistributed struct{ layer Layer }

func (d timeDistributed) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	if x.Rank() < 2 || x.Rank() == 2 && x.DType().IsFloat() {
		panic(fmt.Errorf("TimeDistributed in %s: the input is %s, expected [batch, time, n] or more axes: see Reshape and Embedding", scope.Scope(), x.Shape()))
	}
	dims := x.Shape().Dimensions
	y := traced(d.layer, scope, graph.Reshape(x, append([]int{dims[0] * dims[1]}, dims[2:]...)...))
	if y.Rank() == 0 || y.Shape().Dimensions[0] != dims[0]*dims[1] {
		panic(fmt.Errorf("TimeDistributed in %s: the layer makes %s of %d places, expected a row for each, [%[3]d, …]", scope.Scope(), y.Shape(), dims[0]*dims[1]))
	}
	return graph.Reshape(y, append([]int{dims[0], dims[1]}, y.Shape().Dimensions[1:]...)...)
}

// Recurrences give their states too, which a layer has not.
type (
	lstm      nn.LSTM
	gru       nn.GRU
	simpleRNN nn.SimpleRNN
)

func (l lstm) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	l.Mask = maskOf("LSTM", l.Mask, scope, x)
	y, _ := nn.LSTM(l).Apply(scope, x)
	return y
}

func (l gru) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	l.Mask = maskOf("GRU", l.Mask, scope, x)
	y, _ := nn.GRU(l).Apply(scope, x)
	return y
}

func (l simpleRNN) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	l.Mask = maskOf("SimpleRNN", l.Mask, scope, x)
	y, _ := nn.SimpleRNN(l).Apply(scope, x)
	return y
}

func sequence(layer string, scope *managed.Scope, x *managed.Node) {
	if x.Rank() != 3 {
		panic(fmt.Errorf("%s in %s: the input is %s, expected [batch, time, n]: see Reshape and Embedding", layer, scope.Scope(), x.Shape()))
	}
}
