package optim_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// lazo's Adam continues a training of GoMLX's, and the other way round, under the same variable names. They are not
// bit-identical: GoMLX computes 1 - 0.999 in 32 bits, with an error of 1.3e-5, and itself differs from optax by 5e-6.
func TestAdam_goesOnFromGoMLXs(t *testing.T) {
	r, f := plugintest.CPU(t), optax(t)
	batches := slopes(t, 100, 1)
	theirs := func() *optim.Optimizer { return optim.GoMLX(optimizer.Adam().LearningRate(0.02).Epsilon(1e-8).Done()) }
	ours := func() *optim.Optimizer { return optim.New(0.02, optim.Adam{}) }
	for name, row := range map[string][2]func() *optim.Optimizer{"from GoMLX's": {theirs, ours}, "to GoMLX's": {ours, theirs}} {
		t.Run(name, func(t *testing.T) {
			c, err := run(t, r, row[0](), batches[:50]).Content(t.Context())
			require.NoError(t, err)
			folder, err := checkpoint.Open(t.TempDir(), checkpoint.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, folder.Close()) }()
			require.NoError(t, folder.Save(t.Context(), 50, c))
			saved, err := folder.Load(t.Context(), 50)
			require.NoError(t, err)
			state := newState(t, r, row[1]())
			require.NoError(t, state.Transfer(t.Context(), saved, withoutUpdates))
			train(t, trainStep(t, bowl), state, batches[50:])
			most := farthest(t, f.Rules["adam"].Parameters[len(f.Steps)-1], parameters(t, state))
			require.LessOrEqual(t, most, tolerance)
			require.Equal(t, 100.0, number(t, state, "/global_step"))
			require.Equal(t, 100.0, number(t, state, "/AdamOptimizer/step"))
			t.Logf("50 steps with one Adam and 50 with the other end %.1e from optax's", most)
		})
	}
}

// withoutUpdates leaves out the one variable that GoMLX's Adam does not have.
func withoutUpdates(name string) string {
	if name == "/optimizers/updates" {
		return ""
	}
	return name
}

// States that lazo saved with GoMLX v0.26.0, whose Adam had another name and dtype for its count, continue to optax's
// results. Those of "gomlx" are of GoMLX's Adam.
func TestRules_goOnFromGoMLX026(t *testing.T) {
	r, f := plugintest.CPU(t), optax(t)
	batches := slopes(t, 100, 1)
	for _, name := range []string{"accumulate", "adam", "adamax", "gomlx", "groups", "lamb", "muon"} {
		t.Run(name, func(t *testing.T) {
			folder, err := checkpoint.Open(filepath.Join("testdata", "saved-v0.26.0", name), checkpoint.Options{ReadOnly: true})
			require.NoError(t, err)
			defer func() { require.NoError(t, folder.Close()) }()
			saved, err := folder.Load(t.Context(), 50)
			require.NoError(t, err)
			var state *managed.State
			missing := 0.0
			if rule := rules[name]; rule != nil {
				state = newState(t, r, rule())
				require.NoError(t, state.Restore(t.Context(), saved))
			} else {
				name, missing = "adam", -50 // updates that GoMLX did not count
				state = newState(t, r, rules[name]())
				require.NoError(t, state.Transfer(t.Context(), saved, withoutUpdates))
			}
			train(t, trainStep(t, bowl), state, batches[50:])
			most := farthest(t, f.Rules[name].Parameters[len(f.Steps)-1], parameters(t, state))
			require.LessOrEqual(t, most, tolerance)
			require.Equal(t, 100.0, number(t, state, "/global_step"))
			for _, n := range state.Names() {
				if strings.HasPrefix(n, "/AdamOptimizer") && strings.HasSuffix(n, "/step") {
					require.Equal(t, number(t, state, "/optimizers/updates"), number(t, state, n)+missing)
				}
			}
			t.Logf("50 steps saved with v0.26.0 and 50 now end %.1e from optax's", most)
		})
	}
}
