package pretrained_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/optim"
)

// Labels of -100 are left out, as by torch's cross_entropy: the loss is the mean over the other ones of the batch.
func TestIgnoredLabels(t *testing.T) {
	f := fixtureOf(t, "llama")
	logits := f.all["ForCausalLM/long/logits"]
	mask := f.all["in/long/attention_mask"]
	labels := make([]int32, 3*25)
	sum, n := 0.0, 0
	for i := range labels {
		if labels[i] = -100; mask.data[4*i] == 0 || i%4 == 1 {
			continue
		}
		labels[i] = int32(i % 60)
		row, total := logits.floats(t)[i*60:][:60], 0.0
		for _, x := range row {
			total += math.Exp(float64(x))
		}
		sum, n = sum+math.Log(total)-float64(row[labels[i]]), n+1
	}
	set, err := data.New(append(f.batch(t, "long", "none").Fields, data.Y(labels, 3, 25))...)
	require.NoError(t, err)
	figures, err := fitted(t, causal(t, "llama")).Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, sum/float64(n), figures["loss"], 1e-5)
	require.Less(t, n, 40)
}

// With a policy and accumulation, weights are float32, and change at every second step.
func TestMixedPrecision(t *testing.T) {
	network := causal(t, "llama")
	m := fitted(t, network, flaxlike.WithPolicy(optim.MixedBFloat16()), flaxlike.WithOptimizer(optim.New(0.02, optim.Accumulate(2), optim.Adam{})))
	batch := first(t, counting(t, 8, 5))
	names := own(network.Rows())
	var all []map[string][]float32
	for range 4 {
		_, _, err := m.TrainStep(t.Context(), batch)
		require.NoError(t, err)
		all = append(all, values(t, m, names...))
	}
	require.NotEqual(t, all[0], all[1])
	require.Equal(t, all[1], all[2])
	v, err := m.Value("/model/lm_head/kernel")
	require.NoError(t, err)
	require.Equal(t, dtypes.Float32, v.DType())
}
