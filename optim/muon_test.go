package optim_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/optim"
)

// The difference of Muon from Keras's, as docs/from-keras.md states it.
func TestS22_muon(t *testing.T) {
	raw, err := os.ReadFile("testdata/keras_muon.json") // written by keras_muon.py there
	require.NoError(t, err)
	var keras map[string][]float32
	require.NoError(t, json.Unmarshal(raw, &keras))
	batches := slopes(t, 100, 1)
	apart := func(m optim.Muon) float64 {
		return farthest(t, keras["as it is"], parameters(t, run(t, plugintest.CPU(t), muon(m), batches)))
	}
	require.InDelta(t, 0.001, apart(optim.Muon{RMS: 0.2}), 0.0005)
	require.InDelta(t, 0.54, apart(optim.Muon{}), 0.005)
}
