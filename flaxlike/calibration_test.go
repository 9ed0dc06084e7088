package flaxlike_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// logits is a model whose output is its input, with a loss of classes.
func logits(t *testing.T, loss string) *flaxlike.Model {
	return newModel(t, nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x }), flaxlike.WithLoss(loss), flaxlike.WithBatchSize(64))
}

// tooSure are examples of three classes whose logits are right in three of four cases, and say more.
func tooSure(t *testing.T, n int) *data.Set {
	x, y := make([]float32, 3*n), make([]int32, n)
	for i := range y {
		y[i] = int32(i % 3)
		at := i % 3
		if i%4 == 0 {
			at = (at + 1) % 3
		}
		x[3*i+at] = 5
	}
	return must.M1(data.New(data.X(x, n, 3), data.Y(y, n)))
}
