package optim_test

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
)

// nested is a model whose names are easily misspelt.
func nested(b *managed.Builder) {
	slope := graph.ReduceAllMean(b.Field("x"))
	for _, name := range []string{"0/stem", "1/trunk", "2/head"} {
		scope := b.Scope().At("model").At("%s", name[:1]).At("%s", name[2:])
		w, bias := scope.VariableWithValue("weights", [][]float32{{1, 2}}), scope.VariableWithValue("biases", []float32{3})
		sum := graph.Add(graph.ReduceAllSum(w.NodeValue(b.Graph())), graph.ReduceAllSum(bias.NodeValue(b.Graph())))
		b.Loss(name[2:], graph.Square(graph.Add(sum, slope)))
	}
}
