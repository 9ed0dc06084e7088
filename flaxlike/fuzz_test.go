package flaxlike

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDescription gives the reader of what a file says of its model any text. What it takes must be the same when it is
// written down and read again.
func FuzzDescription(f *testing.F) {
	for _, network := range []Layer{
		Sequential(Conv(4, 3), BatchNorm(), Activation("relu"), Reshape(2, -1), Dropout(0.5), Named("last", Dense(3))),
		Sequential(SeparableConv(4, 3), DepthwiseConv(2), ConvTranspose(3, 3, 2), L1(0.1, Dense(2)), L2(0.2, Dense(2))),
		Residual(TimeDistributed(Embedding(5, 3)), LSTM(3), CausalAttention(2, 2)),
	} {
		c, err := writing{}.config(network, "")
		require.NoError(f, err)
		text, err := json.Marshal(description{Version: descriptionVersion, Network: &c, BatchSize: 3, Losses: []judge{{Name: "mse", Weight: 2}},
			Metrics: []judge{{Name: "mae"}}, Optimizer: "adam", Rate: 0.1, Classes: map[string][]string{"": {"a", "b"}}, ClassWeights: map[int]float64{1: 2}})
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := readDescription(text)
		if err != nil {
			return
		}
		if _, err := d.inputs(); err != nil {
			return
		}
		var s settings
		if err := d.fill(&s); err != nil {
			return
		}
		c, err := writing{}.config(s.network, "")
		require.NoError(t, err)
		again, err := reading{}.layer(c)
		require.NoError(t, err)
		require.Equal(t, s.network, again)
	})
}
