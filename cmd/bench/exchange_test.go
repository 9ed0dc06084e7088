package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// variantsOf are the variants of lines with this number of ranks.
func variantsOf(t *testing.T, out []byte, workload string, ranks int) (list []string) {
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var l line
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&l))
		require.Equal(t, workload, l.Workload)
		require.Equal(t, ranks, l.Ranks)
		require.Equal(t, l.N, len(l.Values))
		require.Positive(t, l.CPUs)
		list = append(list, l.Variant)
	}
	return list
}

// By hand: 784-512-10 has 784 weights and a bias a unit, then 512 and one.
func TestParameters(t *testing.T) {
	require.Equal(t, 785*512+513*10, parameters([]int{512, 10}))
	for _, m := range exchangers {
		require.InDelta(t, map[string]float64{"mlp 2.0 M": 2.0e6, "mlp 25 M": 25e6}[m.name], parameters(m.layers), 0.01e6)
	}
}
