package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/optim"
)

// The first two updates for the gradients 2 and 1, by hand.
func TestAdaptive_byHand(t *testing.T) {
	const g1, g2 = 2., 1.
	adadelta := func() (first, second float64) {
		const d, e = 0.5, 0.25
		s := (1 - d) * g1 * g1
		first = g1 * math.Sqrt(e) / math.Sqrt(s+e)
		u := (1 - d) * first * first
		return first, g2 * math.Sqrt(u+e) / math.Sqrt(d*s+(1-d)*g2*g2+e)
	}
	first, second := adadelta()
	for name, row := range map[string]struct {
		rule          optim.Transformation
		first, second float64
	}{
		"adagrad":  {optim.Adagrad{Start: 0.25, Epsilon: 1e-12}, g1 / math.Sqrt(0.25+g1*g1), g2 / math.Sqrt(0.25+g1*g1+g2*g2)},
		"adadelta": {optim.Adadelta{Decay: 0.5, Epsilon: 0.25}, first, second},
	} {
		state, step := newState(t, plugintest.CPU(t), optim.New(1, row.rule)), trainStep(t, raw)
		done := 0.0
		for i, g := range []float32{g1, g2} {
			gradient := make([]float32, size)
			gradient[0] = g
			train(t, step, state, []data.Batch{batchOf(t, gradient, 1)})
			at := -float64(parameters(t, state)[0])
			require.InDelta(t, []float64{row.first, row.second}[i], at-done, 1e-5, "%s, update %d", name, i+1)
			done = at
		}
	}
}
