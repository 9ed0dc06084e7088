package flaxlike_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// Symbols of one to three frames, with silence between some, in a sequence of up to 24 frames: the labels have no
// places.
func TestCTC_learnsToRead(t *testing.T) {
	const frames, most, symbols, n = 24, 6, 4, 640
	random := rand.New(rand.NewPCG(1, 2))
	var xs, ys [][]int32
	for range n {
		var x, y []int32
		for len(x) < frames-8 && len(y) < most {
			symbol := 1 + random.Int32N(symbols)
			if len(y) > 0 && y[len(y)-1] == symbol || random.IntN(2) == 0 {
				x = append(x, slices.Repeat([]int32{1}, 1+random.IntN(3))...) // silence
			}
			x, y = append(x, slices.Repeat([]int32{symbol + 1}, 1+random.IntN(3))...), append(y, symbol)
		}
		xs, ys = append(xs, x), append(ys, y)
	}
	x, _ := must.M2(data.PadSequences(xs, 0, frames))
	y, _ := must.M2(data.PadSequences(ys, 0, most))
	set := must.M1(data.New(data.Field{Name: "x", Array: x}, data.Field{Name: "y", Array: y}))
	train, test := must.M2(set.Split(0.8, 1))
	m := newModel(t, nn.Sequential{nn.Embedding{Vocabulary: symbols + 2, Width: 8, Padding: new(0)}, nn.LSTM{Units: 16}, nn.Dense{Units: symbols + 1}},
		flaxlike.WithLoss("ctc"), flaxlike.WithLearningRate(0.02), flaxlike.WithSeed(1))
	must.M1(m.Fit(t.Context(), train, quiet(flaxlike.Fit{BatchSize: 32, Epochs: 12})))
	path := must.M1(must.M1(m.Predict(t.Context(), test)).Classes()).Flat.([]int32)
	given, labels := must.M1(test.Field("x")).Flat.([]int32), must.M1(test.Field("y")).Flat.([]int32)
	right := 0
	for i := range test.Len() {
		var read []int32
		for f, before := 0, int32(0); f < frames && given[i*frames+f] != 0; f++ {
			if class := path[i*frames+f]; class != before {
				if before = class; class != 0 {
					read = append(read, class)
				}
			}
		}
		if slices.Equal(append(read, make([]int32, most)...)[:most], labels[i*most:(i+1)*most]) {
			right++
		}
	}
	require.GreaterOrEqual(t, float64(right)/float64(test.Len()), 0.95, "%d of %d", right, test.Len())

	must.M(m.Close())
	labels[0] = symbols + 1
	m = newModel(t, nn.Sequential{nn.Embedding{Vocabulary: symbols + 2, Width: 8, Padding: new(0)}, nn.Dense{Units: symbols + 1}}, flaxlike.WithLoss("ctc"))
	_, err := m.Evaluate(t.Context(), must.M1(data.New(data.X(given, test.Len(), frames), data.Y(labels, test.Len(), most))))
	require.ErrorContains(t, err, "ctc takes 1 to 4, with 0 after the last label")
}
