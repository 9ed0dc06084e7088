package optim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// Adam has two buffers for each parameter, and one for the counts of all parameters that start together. A parameter
// that joins adds one. A program is compiled again at most once, when counts that it assumed equal may differ.
func TestAdam_buffers(t *testing.T) {
	r, batch := plugintest.CPU(t), batchOf(t, []float32{1}, 1)
	one := func(state *managed.State, step *managed.Stepper) {
		_, _, err := step.Step(t.Context(), state, batch)
		require.NoError(t, err)
	}
	for _, n := range []int{1, 2, 20} {
		state := newState(t, r, optim.New(0.01, optim.Adam{}))
		step, builds := several(t, n, func(int) bool { return true })
		for range 3 {
			one(state, step)
		}
		require.Equal(t, 1, *builds)
		// The batch, the counts, /global_step, /optimizers/learning_rate, /optimizers/updates and /AdamOptimizer/step.
		require.Equal(t, 3*n+6, arguments(t, step.StableHLO()[0]), "%d parameters", n)
		require.Equal(t, 3.0, number(t, state, fmt.Sprintf("/optimizers/parameters/p%d/count", n-1)))
	}

	const n = 6
	state := newState(t, r, optim.New(0.01, optim.Adam{}))
	var steps []*managed.Stepper
	var builds []*int
	all := func(int) bool { return true }
	for _, takes := range []func(int) bool{ // each trains the parameters of another one, and more
		func(i int) bool { return i < 2 }, func(i int) bool { return i < 4 }, func(i int) bool { return i%2 == 1 }, all} {
		step, n := several(t, n, takes)
		steps, builds = append(steps, step), append(builds, n)
	}
	packs := []int{1, 2, 3, 4}
	trained := []int{2, 4, 3, 6}
	want := make([]float64, n)
	for round := range 3 {
		for i, step := range steps {
			one(state, step)
			// The third step is the first to train only a part of those that the first two train together.
			require.Equal(t, 1+min(round, 1)*map[int]int{0: 1, 1: 1}[i], *builds[i], "step %d", i)
			require.Equal(t, n+2*trained[i]+5+packs[i], arguments(t, step.StableHLO()[0]), "step %d", i)
		}
		for p := range n {
			want[p] += float64(1 + p%2)
			if p < 2 {
				want[p]++
			}
			if p < 4 {
				want[p]++
			}
			require.Equal(t, want[p], number(t, state, fmt.Sprintf("/optimizers/parameters/p%d/count", p)), "p%d", p)
		}
	}

	// Restored into a new state, into one whose counts were equal, and cloned.
	content := saved(t, state)
	fresh, equal := newState(t, r, optim.New(0.01, optim.Adam{})), newState(t, r, optim.New(0.01, optim.Adam{}))
	whole, wholeBuilds := several(t, n, all)
	for range 2 {
		one(equal, whole)
	}
	require.Equal(t, 1, *wholeBuilds)
	clone, err := state.Clone(t.Context(), state.Strategy())
	require.NoError(t, err)
	defer func() { require.NoError(t, clone.Close()) }()
	require.NoError(t, fresh.Restore(t.Context(), content))
	require.NoError(t, equal.Restore(t.Context(), content))
	for _, s := range []*managed.State{state, fresh, equal, clone} {
		one(s, whole)
		require.Equal(t, want[3]+1, number(t, s, "/optimizers/parameters/p3/count"))
		for _, name := range []string{"/p0", "/p3", "/p4", "/p5"} {
			require.Equal(t, floats(t, state, name), floats(t, s, name), name)
		}
	}
	require.Equal(t, 1+4, *wholeBuilds, "once for each, and for the restored one again")
	for p := range want {
		want[p]++
	}

	name := "/optimizers/parameters/p3/count"
	require.NoError(t, state.SetValue(name, tensors.FromScalar(int64(40))))
	one(state, steps[3])
	require.Equal(t, 41.0, number(t, state, name))
	require.Equal(t, want[2]+1, number(t, state, "/optimizers/parameters/p2/count"))
	require.EqualError(t, state.SetValue(name, tensors.FromScalar(float32(1))), `managed: set "`+name+`": the tensor is (Float32), expected (Int64)`)
}

// A run from a checkpoint of an older version, with a count per parameter or one for all, continues as it did there,
// also with a parameter that joins later. So does a checkpoint of this run, whichever step asks first.
func TestAdam_savedCounts(t *testing.T) {
	r := plugintest.CPU(t)
	for name, row := range map[string]struct {
		chain  optim.Chain
		parts  []string
		firsts [][]string // the parts whose counts are created first
	}{
		"parameters": {optim.Chain{optim.Masked(optim.Under("/body"), optim.Accumulate(2)), optim.Adam{}}, []string{"head", "body", "tail"},
			[][]string{nil, {"head"}, {"body", "head"}}},
		"all": {optim.Chain{optim.Adam{}}, []string{"head", "body"}, [][]string{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", "saved-counts", name+".json"))
			require.NoError(t, err)
			var want struct {
				Saved      int
				Parameters [][]float32
			}
			require.NoError(t, json.Unmarshal(raw, &want))
			folder, err := checkpoint.Open(filepath.Join("testdata", "saved-counts", name), checkpoint.Options{ReadOnly: true})
			require.NoError(t, err)
			defer func() { require.NoError(t, folder.Close()) }()
			old, err := folder.Load(t.Context(), checkpoint.Step(want.Saved))
			require.NoError(t, err)
			build := func(b *managed.Builder) {
				of := func(name string) *graph.Node {
					return b.Scope().At("%s", name).VariableWithValue("v", float32(1)).NodeValue(b.Graph())
				}
				all := graph.Add(graph.Add(graph.MulScalar(of("body"), 10), of("head")), of("tail"))
				b.Loss("loss", graph.Square(graph.Sub(all, graph.ReduceAllSum(b.Field("x")))))
			}
			trains := func(parts ...string) *managed.Stepper {
				step := managed.TrainStep(build, managed.TrainOnly(func(name string) bool {
					return slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(name, "/"+part+"/") })
				}))
				t.Cleanup(func() { require.NoError(t, step.Close()) })
				return step
			}
			batch := func(i int) data.Batch { return batchOf(t, []float32{float32((want.Saved + i + 1) % 3)}, 1) }
			restored := func(c *checkpoint.Checkpoint, firsts ...string) *managed.State {
				state := newState(t, r, optim.New(0.1, row.chain...))
				require.NoError(t, state.Restore(t.Context(), c))
				for _, first := range firsts { // creates only its own count
					require.NoError(t, trains(first).Prepare(t.Context(), state, batch(0)))
				}
				return state
			}
			step := trains(row.parts...)
			goOn := func(state *managed.State, from, to int) {
				for i := from; i < to; i++ {
					train(t, step, state, []data.Batch{batch(i)})
					got := []float32{floats(t, state, "/head/v")[0], floats(t, state, "/body/v")[0], floats(t, state, "/tail/v")[0]}
					require.LessOrEqual(t, farthest(t, want.Parameters[i], got), 1e-6, "step %d", i+1)
				}
			}
			half := restored(old)
			goOn(half, 0, 3)
			again := saved(t, half)
			goOn(half, 3, 6)
			counts := func(state *managed.State) []float64 {
				var all []float64
				for _, name := range slices.Sorted(slices.Values(state.Names())) {
					if strings.HasSuffix(name, "/count") {
						all = append(all, number(t, state, name))
					}
				}
				return all
			}
			require.Len(t, counts(half), len(row.parts))
			for _, firsts := range row.firsts {
				whole := restored(old, firsts...)
				goOn(whole, 0, 6)
				resumed := restored(again, firsts...)
				require.Equal(t, len(saved(t, half).Tensors), len(saved(t, resumed).Tensors), "those that wait are saved again")
				goOn(resumed, 3, 6)
				require.Equal(t, counts(half), counts(whole))
				require.Equal(t, bits(t, half), bits(t, resumed))
			}

			// Into a state that has counted already, with other names.
			require.NoError(t, half.Restore(t.Context(), old))
			goOn(half, 0, 6)
			moved := newState(t, r, optim.New(0.1, row.chain...))
			require.NoError(t, moved.Transfer(t.Context(), again, func(name string) string { return name }))
			goOn(moved, 3, 6)
			require.Equal(t, counts(half), counts(moved))
		})
	}
}

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
