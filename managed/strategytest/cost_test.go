//lazo:norace
package strategytest

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/cost"
)

// Estimates of the CPU plugin 0.0.1 for training steps with Adam and 64 examples; lazo counts the same to the last
// operation.
var reckoned = []struct {
	model                  string
	flops, transcendentals float64
}{
	{"Dense", 166_528, 919},
	{"Conv", 5_056_709, 3_247},
	{"Conv, strides", 1_271_621, 1_327},
	{"Conv, groups", 3_072_373, 3_103},
	{"DepthwiseConv", 1_786_965, 1_711},
	{"ConvTranspose", 8_670_917, 10_927},
	{"MaxPool", 4_646_741, 1_327},
	{"BatchNorm", 5_909_157, 3_271},
	{"LayerNorm", 2_363_848, 3_055},
	{"Dropout", 239_158, 919},
	{"Embedding", 439_080, 2_151},
	{"Attention", 5_975_432, 20_871},
	{"tied embeddings", 4_345_814, 39_970},
}

// The products of the LSTM of 24 units over 12 places of 16 numbers, by hand, with 64 examples: those of the input and
// the gradient of their weights, of all places; those of the state, and both of their gradients, place by place; the
// last layer of 5 outputs and its two gradients.
const lstmProducts = 2*64*12*16*(4*24)*2 + 2*64*12*24*(4*24)*3 + 2*64*24*5*3

// TestCost holds lazo's count of steps against that of the plugin, where it reckons one, and against that of version
// 0.0.1.
func TestCost(t *testing.T) {
	models := layerModels()
	on := strategies.Jit(plugintest.CPU(t))
	of := func(t *testing.T, model string) (told xla.Cost, counts *cost.Counts, block int) {
		t.Helper()
		i := slices.IndexFunc(models, func(m layerModel) bool { return m.name == model })
		require.GreaterOrEqual(t, i, 0, model)
		state, err := managed.New(on, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		step := managed.TrainStep(models[i].build)
		defer func() { require.NoError(t, step.Close()) }()
		p, err := step.Program(t.Context(), state, models[i].batch(t, 64))
		require.NoError(t, err)
		told, err = p.Cost()
		require.NoError(t, err)
		text, err := p.Optimized()
		require.NoError(t, err)
		counts, err = cost.Count(text, nil)
		require.NoError(t, err)
		t.Logf("counted by lazo %t: %.0f FLOPs, %.0f transcendentals, %.0f bytes; lazo: %.0f, %.0f, %.0f; products %v",
			told.Counted, told.FLOPs, told.Transcendentals, told.BytesAccessed, counts.FLOPs(), counts.Transcendentals, counts.Bytes, counts.Matrix)
		require.Empty(t, counts.Uncounted)
		if told.Counted {
			require.Equal(t, xla.Cost{FLOPs: counts.FLOPs(), Transcendentals: counts.Transcendentals, BytesAccessed: counts.Bytes, Counted: true, Unknown: counts.Unknown}, told)
		}
		return told, counts, p.Block()
	}
	for _, row := range reckoned {
		if !costCounted(row.model) {
			continue
		}
		t.Run(row.model, func(t *testing.T) {
			told, counts, block := of(t, row.model)
			// A block is a loop whose length is the host's: it counts once, and its condition twice.
			loops := 0.0
			if block > 1 {
				loops = 1
			}
			require.Len(t, counts.Unknown, int(loops))
			if !told.Counted {
				require.InDelta(t, told.FLOPs, counts.FLOPs(), loops)
				require.Equal(t, told.Transcendentals, counts.Transcendentals)
				// A convolution with groups is 7 % apart.
				require.InEpsilon(t, told.BytesAccessed, counts.Bytes, 0.08)
			}
			require.InEpsilon(t, row.flops+loops, counts.FLOPs(), 0.01)
			require.InEpsilon(t, row.transcendentals, counts.Transcendentals, 0.01)
		})
	}
	t.Run("LSTM", func(t *testing.T) {
		told, counts, _ := of(t, "LSTM")
		require.EqualValues(t, lstmProducts, counts.Matrix["f32"])
		if !told.Counted {
			require.Less(t, told.FLOPs, float64(lstmProducts), "it counts the body of a loop once")
		}
	})
}
