package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
)

// Errors of Batch have the package's name, once, whatever they come from.
func TestErrorsOfBatch(t *testing.T) {
	uneven := data.Batch{Fields: []data.Field{data.X([]float32{1, 2}, 2), data.Y([]float32{1, 2, 3}, 3)}}
	for name, devices := range map[string]int{"jit": 1, "eager": 1, "data_parallel": 2} {
		s, err := strategies.Parse(name, plugintest.Devices(t, devices))
		require.NoError(t, err)
		for _, b := range []data.Batch{uneven, {Size: 7, Fields: uneven.Fields[:1]}} {
			_, err = s.Batch(b)
			require.ErrorContains(t, err, "strategies: ")
			require.NotContains(t, err.Error(), "data: ")
		}
	}
}
