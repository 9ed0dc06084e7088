package flaxlike_test

import (
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// dice and tversky take probabilities: logits are refused, and are not taken as probabilities. Values that the graph
// limits to 0 to 1 are accepted.
func TestLoss_ofProbabilitiesRefusesLogits(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{-3, -1, 2, 5}, 4, 1), data.Y([]float32{0, 0, 1, 1}, 4, 1)))
	for _, loss := range []string{"dice", "tversky"} {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss(loss))
		_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
		require.ErrorContains(t, err, loss+" takes probabilities, and the output")
		_, err = m.Evaluate(t.Context(), set)
		require.ErrorContains(t, err, "end the network with nn.Activation(\"sigmoid\")")
		p, err := m.Predict(t.Context(), set)
		require.NoError(t, err)
		_, err = p.Probabilities()
		require.ErrorIs(t, err, flaxlike.ErrNoProbabilities)
		for _, end := range []nn.Layer{nn.Activation("sigmoid"), nn.Activation("hard_sigmoid"), nn.Func(clipped)} {
			m := newModel(t, nn.Sequential{nn.Dense{Units: 1}, end}, flaxlike.WithLoss(loss), flaxlike.WithMetrics("binary_accuracy"))
			_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
			require.NoError(t, err)
			probabilities, err := probabilitiesOf(t, m, set)
			require.NoError(t, err)
			require.Equal(t, []int{4, 1}, probabilities.Dims)
		}
	}
}

// A crossentropy takes logits, and refuses what is from 0 to 1 without a sigmoid, too.
func TestLoss_ofLogitsRefusesNumbersFrom0To1(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{-3, -1, 2, 5}, 4, 1), data.Y([]float32{0, 0, 1, 1}, 4, 1)))
	for _, end := range []nn.Layer{nn.Activation("hard_sigmoid"), nn.Func(clipped)} {
		m := newModel(t, nn.Sequential{nn.Dense{Units: 1}, end}, flaxlike.WithLoss("binary_crossentropy"))
		_, err := m.Evaluate(t.Context(), set)
		require.ErrorContains(t, err, "the output went through a function from 0 to 1, expected logits")
	}
}
