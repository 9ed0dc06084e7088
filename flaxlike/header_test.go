package flaxlike

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/nn"
)

// FuzzHeader reads any text as the description of a model. An accepted one must be the same after writing and
// reading.
func FuzzHeader(f *testing.F) {
	for _, network := range []nn.Layer{
		nn.Sequential{nn.Conv{Channels: 4, Window: []int{3}}, nn.BatchNorm{}, nn.Activation("relu"), nn.Reshape{2, -1}, nn.Dropout{Rate: 0.5}, nn.Named{Name: "last", Layer: nn.Dense{Units: 3}}},
		nn.Sequential{nn.SeparableConv{Channels: 4, Window: []int{3}}, nn.DepthwiseConv{Window: []int{2}}, nn.ConvTranspose{Channels: 3, Window: []int{3}, Strides: []int{2}}, nn.L1{Rate: 0.1, Layers: []nn.Layer{nn.Dense{Units: 2}}}, nn.L2{Rate: 0.2, Layers: []nn.Layer{nn.Dense{Units: 2}}}},
		nn.Residual{nn.TimeDistributed{Layer: nn.Embedding{Vocabulary: 5, Width: 3}}, nn.LSTM{Units: 3, Last: true}, nn.Attention{Heads: 2, Width: 2, Causal: true}},
	} {
		c, err := writing{}.config(network, "")
		require.NoError(f, err)
		text, err := json.Marshal(header{Version: headerVersion, Network: &c, BatchSize: 3, Losses: []judge{{Name: "mse", Weight: 2}},
			Metrics: []judge{{Name: "mae"}}, Optimizer: "adam", Rate: 0.1, Classes: map[string][]string{"": {"a", "b"}}, ClassWeights: map[int]float64{1: 2}})
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := readHeader(text)
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
