package managed_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
)

// A model trained by GoMLX v0.26.0 in 30 steps of Adam continues as it did there, although GoMLX's later versions have
// other names, dtypes and dimensions for Adam's count, for a dense layer with two output axes, and for Adam's moments
// of a variable at the root.
func TestF39_aModelOfGoMLX026GoesOn(t *testing.T) {
	r, dir := plugintest.CPU(t), filepath.Join("testdata", "trained-by-gomlx-v0.26.0")
	var there struct {
		Evaluation float64
		Losses     []float64
	}
	text, err := os.ReadFile(filepath.Join(dir, "losses.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &there))
	c, err := checkpoint.ImportGoMLX(dir, 0)
	require.NoError(t, err)
	model := func(b *managed.Builder) {
		scale := b.Scope().VariableWithValue("scale", float32(0)).NodeValue(b.Graph())
		h := graph.Reshape(graph.Tanh(layers.Dense(b.Scope().In("h"), b.Field("x"), true, 2, 4)), -1, 8)
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), graph.Mul(scale, layers.Dense(b.Scope().In("out"), h, true, 1)))))
	}
	batch := first(t, line(t, 16).Batches(16))
	for name, rule := range map[string]*optim.Optimizer{"GoMLX's Adam": adam(), "lazo's": optim.New(0.01, optim.Adam{Epsilon: 1e-7})} {
		t.Run(name, func(t *testing.T) {
			state := newState(t, r, managed.WithOptimizer(rule))
			require.NoError(t, state.Transfer(t.Context(), c, func(variable string) string {
				if _, found := c.Tensor(variable); !found { // as docs/from-gomlx.md has it
					return ""
				}
				return variable
			}))
			loss := func(s *managed.Stepper, batch data.Batch) float64 {
				_, logs, err := s.Step(t.Context(), state, batch)
				require.NoError(t, err)
				loss, err := logs.Float("loss")
				require.NoError(t, err)
				return loss
			}
			require.InEpsilon(t, there.Evaluation, loss(stepper(t, managed.TestStep(model)), batch), 1e-6)
			going, worst := stepper(t, managed.TrainStep(model)), 0.0
			for _, want := range there.Losses {
				got := loss(going, batch)
				require.InEpsilon(t, want, got, 1e-5)
				worst = max(worst, got/want-1, want/got-1)
			}
			require.EqualValues(t, []float32{40}, floats(t, state, "/AdamOptimizer/step"))
			t.Logf("F39: a model of GoMLX v0.26.0, 30 steps of Adam: the next 10 losses within %.1g", worst)
		})
	}
}
