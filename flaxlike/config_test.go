package flaxlike

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/nn"
)

// Layers that flaxlike's earlier constructors described (testdata/layers-1.json, by 03fab63) are package nn's with the
// same settings. Present descriptions are read as the same.
func TestLayersOfOldFiles(t *testing.T) {
	raw, err := os.ReadFile("testdata/layers-1.json")
	require.NoError(t, err)
	var old config
	require.NoError(t, json.Unmarshal(raw, &old))
	network, err := reading{}.layer(old)
	require.NoError(t, err)
	three := []int{3}
	want := nn.Sequential{nn.Dense{Units: 3}, nn.Conv{Channels: 4, Window: three}, nn.DepthwiseConv{Window: three}, nn.SeparableConv{Channels: 5, Window: three},
		nn.ConvTranspose{Channels: 5, Window: three, Strides: []int{2}}, nn.MaxPool{Window: 2}, nn.MeanPool{Window: 3}, nn.GlobalMeanPool{}, nn.Flatten{}, nn.Reshape{3, -1},
		nn.Activation("gelu"), nn.Dropout{Rate: 0.25}, nn.BatchNorm{}, nn.LayerNorm{}, nn.RMSNorm{}, nn.GroupNorm{Groups: 2}, nn.Embedding{Vocabulary: 7, Width: 3},
		nn.Positions{Length: 7}, nn.Attention{Heads: 2, Width: 3}, nn.Attention{Heads: 2, Width: 3, Causal: true},
		nn.LSTM{Units: 3, Last: true}, nn.GRU{Units: 4, Last: true}, nn.SimpleRNN{Units: 5, Last: true}, nn.TimeDistributed{Layer: nn.Dense{Units: 2}},
		nn.Named{Name: "here", Layer: nn.Dense{Units: 2}}, nn.Residual{nn.Dense{Units: 4}, nn.Activation("relu")},
		nn.L1{Rate: 0.1, Layers: []nn.Layer{nn.Dense{Units: 2}}}, nn.L2{Rate: 0.2, Layers: []nn.Layer{nn.Dense{Units: 3}, nn.Flatten{}}},
		nn.Embedding{Vocabulary: 5, Width: 2, Padding: new(0)}, nn.Positions{Length: 9},
		nn.LSTM{Units: 3, Bidirectional: true, RecurrentKernel: nn.Initial("glorot_uniform")}, nn.Dense{Units: 6, NoBias: true}, nn.Sequential{}}
	got := network.(nn.Sequential)
	require.Len(t, got, len(want))
	for i := range want {
		if l, ok := got[i].(nn.LSTM); ok && l.RecurrentKernel != nil { // functions are compared by what they are written down as
			require.Equal(t, "glorot_uniform", initializerName(l.RecurrentKernel))
			l.RecurrentKernel, got[i], want[i] = nil, nil, nn.Layer(nil)
			require.Equal(t, nn.LSTM{Units: 3, Bidirectional: true}, l)
		}
		require.Equal(t, want[i], got[i], old.Layers[i].Layer)
	}

	later := nn.Sequential{nn.LastStep{}, nn.GlobalMaxPool{}, nn.DepthwiseConv{Window: three, Causal: true}}
	kept, err := writing{}.config(later, "")
	require.NoError(t, err)
	read, err := reading{}.layer(kept)
	require.NoError(t, err)
	require.Equal(t, later, read)

	again, err := writing{}.config(want[:30], "")
	require.NoError(t, err)
	for i, c := range again.Layers {
		require.Contains(t, []string{old.Layers[i].Layer, "Attention", "Positions"}, c.Layer)
		require.Len(t, c.Settings, len(old.Layers[i].Settings), c.Layer)
		for name, value := range c.Settings {
			require.Equal(t, string(old.Layers[i].Settings[name]), string(value), c.Layer)
		}
	}
}
