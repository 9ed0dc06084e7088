package optim_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// raw has the batch as its gradient, and parameters that start at 0, so a step of rate 1 leaves minus the update.
func raw(b *managed.Builder) {
	g := b.Graph()
	x := graph.ReduceMean(b.Field("x"), 0)
	w := b.Scope().VariableWithValue("w", make([]float32, matrixSize)).NodeValue(g)
	v := b.Scope().VariableWithValue("b", make([]float32, size-matrixSize)).NodeValue(g)
	b.Loss("loss", graph.ReduceAllSum(graph.Mul(x, graph.Concatenate([]*graph.Node{w, v}, 0))))
}

// updateOf returns the update of a stateless chain for a gradient.
func updateOf(t *testing.T, chain ...optim.Transformation) func(t require.TestingT, gradient []float32) []float32 {
	t.Helper()
	state, step := newState(t, plugintest.CPU(t), optim.New(1, chain...)), trainStep(t, raw)
	train(t, step, state, []data.Batch{batchOf(t, make([]float32, size), 1)})
	s, err := state.Snapshot(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return func(t require.TestingT, gradient []float32) []float32 {
		require.NoError(t, s.Restore(background))
		train(t, step, state, []data.Batch{batchOf(t, gradient, 1)})
		update := parameters(t, state)
		for i := range update {
			update[i] = 0 - update[i]
		}
		return update
	}
}

func batchOf(t require.TestingT, x []float32, examples int) data.Batch {
	set, err := data.New(data.X(x, examples, len(x)/examples))
	require.NoError(t, err)
	for b, err := range set.Batches(examples).All() {
		require.NoError(t, err)
		return b
	}
	return data.Batch{}
}

func gradients(t *rapid.T) []float32 {
	scale := rapid.SampledFrom([]float32{1e-20, 1e-3, 1, 1e3, 1e15}).Draw(t, "scale")
	v := rapid.SliceOfN(rapid.Float32Range(-1, 1), size, size).Draw(t, "gradient")
	for i := range v {
		v[i] = normal(v[i] * scale)
	}
	return v
}

// normal flushes subnormal numbers to 0, as XLA does.
func normal(x float32) float32 {
	if math.Abs(float64(x)) < 1e-37 {
		return 0
	}
	return x
}

func normOf(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// Clipping by the global norm never increases the norm, nor leaves it above the limit, and keeps the direction. An
// update below the limit passes bit-identical.
func TestClipByGlobalNorm_law(t *testing.T) {
	const limit = 0.75
	update := updateOf(t, optim.Clip{GlobalNorm: limit})
	rapid.Check(t, func(t *rapid.T) {
		gradient := gradients(t)
		got := update(t, gradient)
		before, after := normOf(gradient), normOf(got)
		require.LessOrEqual(t, after, before)
		require.LessOrEqual(t, after, limit*(1+1e-6))
		if before < limit*(1-1e-6) {
			for i := range gradient {
				require.Equal(t, gradient[i]+0, got[i]+0)
			}
			return
		}
		for i := range gradient {
			require.InDelta(t, float64(gradient[i])*limit/before, got[i], limit*1e-5)
		}
	})
}

// Clipping by norm does to each parameter what clipping by the global norm does to all: no norm is above the limit, and
// a smaller one passes bit-identical, whatever the other's is.
func TestClipByNorm_law(t *testing.T) {
	const limit = 0.75
	update := updateOf(t, optim.Clip{Norm: limit})
	rapid.Check(t, func(t *rapid.T) {
		gradient := gradients(t)
		for i := range gradient[matrixSize:] { // the two are of different sizes
			gradient[matrixSize+i] = normal(gradient[matrixSize+i] / 16)
		}
		got := update(t, gradient)
		for _, part := range [][2]int{{0, matrixSize}, {matrixSize, size}} {
			before, after := gradient[part[0]:part[1]], got[part[0]:part[1]]
			norm := normOf(before)
			require.LessOrEqual(t, normOf(after), limit*(1+1e-6))
			for i := range before {
				if norm < limit*(1-1e-6) {
					require.Equal(t, before[i]+0, after[i]+0)
				} else {
					require.InDelta(t, float64(before[i])*limit/norm, after[i], limit*1e-5)
				}
			}
		}
	})
}

// optax clips by the root mean square, clip_by_block_rms: the norm divided by the root of the count. By hand, for a
// gradient of 3 and 4 (norm 5) in a parameter of 24 elements and one of 0.3 and 0.4 (norm 0.5) in one of 4.
func TestClipByNorm_byHand(t *testing.T) {
	gradient := make([]float32, size)
	gradient[0], gradient[1], gradient[matrixSize], gradient[matrixSize+1] = 3, -4, 0.3, 0.4
	want := append([]float32(nil), gradient...)
	want[0], want[1] = 1.5, -2 // of norm 2.5
	require.Equal(t, want, updateOf(t, optim.Clip{Norm: 2.5})(t, gradient))
	want[0], want[1], want[matrixSize], want[matrixSize+1] = 0.15, -0.2, 0.15, 0.2 // of norm 0.25 each
	got := updateOf(t, optim.Clip{Norm: 0.25})(t, gradient)
	require.InDeltaSlice(t, want, got, 1e-7)
}

func TestClip_law(t *testing.T) {
	const limit = 0.25
	update := updateOf(t, optim.Clip{Value: limit})
	rapid.Check(t, func(t *rapid.T) {
		gradient := gradients(t)
		for i, u := range update(t, gradient) {
			require.Equal(t, max(-limit, min(limit, gradient[i]))+0, u+0)
		}
	})
}

// Accumulating k batches equals one batch of all their examples: the same parameters up to rounding, the same counts.
func TestAccumulate_law(t *testing.T) {
	r := plugintest.CPU(t)
	for _, k := range []int{1, 2, 5, 8} {
		const updates = 7
		all := slopes(t, updates*k, 2)
		small := run(t, r, optim.New(0.05, optim.Accumulate(k), optim.Clip{GlobalNorm: 0.5}, optim.Adam{}, optim.ScaleBySchedule(optim.Cosine(1, 0, 10))), all)
		large := run(t, r, optim.New(0.05, optim.Clip{GlobalNorm: 0.5}, optim.Adam{}, optim.ScaleBySchedule(optim.Cosine(1, 0, 10))), slopes(t, updates, 2*k))
		apart := farthest(t, parameters(t, large), parameters(t, small))
		require.LessOrEqual(t, apart, 2e-6, "k = %d", k)
		require.Equal(t, float64(updates), number(t, small, "/optimizers/updates"))
		require.Equal(t, float64(updates*k), number(t, small, "/global_step"), "batches")
		require.Zero(t, number(t, small, "/optimizers/accumulate/w/batches"))
		t.Logf("k = %d: %.1e apart", k, apart)
	}
}

// Between updates only the accumulation's own state changes.
func TestAccumulate_holdsBack(t *testing.T) {
	r := plugintest.CPU(t)
	state, step := newState(t, r, optim.New(0.05, optim.Accumulate(4), optim.Adam{}, optim.Average{Decay: 0.5})), trainStep(t, bowl)
	var before map[string][]byte
	for i, b := range slopes(t, 12, 1) {
		train(t, step, state, []data.Batch{b})
		now, changed := bits(t, state), map[string]bool{}
		for name := range now {
			changed[name] = string(now[name]) != string(before[name])
		}
		if i%4 == 3 {
			for _, name := range []string{"/w", "/b", "/optimizers/updates", "/AdamOptimizer/step", "/AdamOptimizer/w_1st_moment", "/optimizers/average/updates", "/optimizers/average/w/sum"} {
				require.True(t, changed[name], "%s at batch %d", name, i)
			}
		} else if i > 0 {
			for name := range now {
				kept := name != "/global_step" && !(strings.HasPrefix(name, "/optimizers/accumulate/") && !strings.HasSuffix(name, "/count"))
				require.Equal(t, !kept, changed[name], "%s at batch %d", name, i)
			}
		}
		before = now
	}
}

// Frozen parameters stay bit-identical, including the sign of a zero, whatever the rest of the chain does, and have no
// state.
func TestFrozen_law(t *testing.T) {
	r := plugintest.CPU(t)
	negative := math.Float32frombits(1 << 31)
	build := func(b *managed.Builder) {
		g := b.Graph()
		zeros := b.Scope().VariableWithValue("zeros", []float32{negative, 0, 1}).NodeValue(g)
		b.Loss("loss", graph.Add(bowlLoss(b), graph.ReduceAllSum(graph.Mul(zeros, graph.Slice(graph.ReduceMean(b.Field("x"), 0), graph.AxisRange(0, 3))))))
	}
	frozen := optim.Frozen(optim.MatchFunc(func(name string, _ shapes.Shape) bool { return name != "/w" }))
	for name, chain := range map[string][]optim.Transformation{
		"adam":   {frozen, optim.Adam{}, optim.WeightDecay{Rate: 0.1}},
		"lion":   {frozen, optim.Lion{}, optim.Average{Decay: 0.9}},
		"last":   {optim.Clip{GlobalNorm: 1}, optim.WeightDecay{Rate: 0.1}, frozen},
		"groups": {optim.Groups(optim.Group{Name: "w", Match: optim.Matrices, Chain: optim.Chain{optim.Muon{}}}, optim.Group{Name: "rest", Chain: optim.Chain{optim.Frozen(nil)}})},
	} {
		t.Run(name, func(t *testing.T) {
			state := newState(t, r, optim.New(0.1, chain...))
			train(t, trainStep(t, build), state, slopes(t, 30, 1))
			require.Equal(t, made(4, 3, 7, 4, 0), floats(t, state, "/b"))
			got := floats(t, state, "/zeros")
			require.Equal(t, []uint32{1 << 31, 0, math.Float32bits(1)}, []uint32{math.Float32bits(got[0]), math.Float32bits(got[1]), math.Float32bits(got[2])})
			require.NotEqual(t, made(24, 5, 11, 8, 0), floats(t, state, "/w"))
			for _, n := range state.Names() {
				require.NotContains(t, n, "/b/")
				require.NotContains(t, n, "/b_")
			}
		})
	}
}
