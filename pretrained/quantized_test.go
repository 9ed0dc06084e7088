package pretrained_test

import (
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// quantized opens a file of Q4_0 and Q8_0. Weights in blocks are also recomputed with their layers.
func quantized(t *testing.T, packed bool) *pretrained.Base {
	t.Helper()
	base := opened(t, "testdata/gguf/quantized.gguf")
	base.Quantized, base.Recompute = packed, packed
	return base
}

// Weights in blocks have the outputs of the same weights in float32 or bfloat16, with a byte for a number of Q8_0 and
// half a byte for one of Q4_0, and 2 bytes for each 32 numbers.
func TestQuantized(t *testing.T) {
	f, on := fixtureOf(t, "llama"), strategies.Jit(plugintest.CPU(t))
	const q4, q8, norms = 60*32 + layer, 60*32 + layer, 5 * 32
	for dtype, differs := range map[dtypes.DType]float64{dtypes.Float32: 2e-5, dtypes.BFloat16: 0.2} {
		var outputs [2][]float64
		for i := range outputs {
			base := quantized(t, i == 1)
			base.DType = dtype
			outputs[i] = outputsOn(t, on, base.CausalLM(), f, "long")["logits"]
		}
		require.InDeltaSlice(t, outputs[0], outputs[1], differs)
		worst := 0.0
		for i, x := range outputs[0] {
			worst = max(worst, math.Abs(x-outputs[1][i]))
		}
		t.Logf("%s: the largest difference is %.3g", dtype, worst)
	}
	for want, packed := range map[int]bool{4 * (q4 + q8 + norms): false, q4/2 + q4/32*2 + q8 + q8/32*2 + 4*norms: true} {
		network := quantized(t, packed).CausalLM()
		state, err := managed.New(on, network.Weights())
		require.NoError(t, err)
		step := managed.TestStep(func(b *managed.Builder) {
			b.Output("logits", network.Outputs(b.Scope().In("model"), b.Field)["logits"])
		})
		_, _, err = step.Step(t.Context(), state, f.batch(t, "long", "none"))
		require.NoError(t, err)
		bytes := 0
		for _, name := range state.Names() {
			if strings.HasPrefix(name, "/model/") {
				v, err := state.Value(name)
				require.NoError(t, err)
				bytes += int(v.Shape().ByteSize())
			}
		}
		require.Equal(t, want, bytes)
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
}

const layer = 32*32 + 2*16*32 + 32*32 + 3*64*32

// Additions to weights in blocks are trained as those to the same weights in float32, saved, merged, and resumed.
func TestQuantized_lora(t *testing.T) {
	var adapters, merged [2]map[string]array
	set := counting(t, 2, 6)
	for i := range adapters {
		network := quantized(t, i == 1).CausalLM().LoRA(pretrained.LoRA{Rank: 4, Targets: []string{"all-linear"}, Modules: []string{"lm_head"}})
		runs := t.TempDir()
		run := func(epochs int, options ...flaxlike.Option) *flaxlike.Model {
			m, err := flaxlike.New(t.Context(), network, append(options, flaxlike.WithLoss(ignoring), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithBatchSize(2),
				flaxlike.WithOptimizer(optim.New(0.05)))...)
			require.NoError(t, err)
			_, err = m.Fit(t.Context(), set, flaxlike.Fit{Epochs: epochs, Output: io.Discard, Callbacks: []loop.Option{checkpoint.Resume(runs, checkpoint.Every(loop.Epochs(1)))}})
			require.NoError(t, err)
			return m
		}
		require.NoError(t, run(1).Close())
		m := run(3) // continues
		value, err := m.Value("/model/lm_head/kernel")
		require.NoError(t, err, "it is trained itself, and not in blocks")
		require.Equal(t, dtypes.Float32, value.DType())
		name := map[int]string{0: "/model/layer_0/gate/kernel", 1: "/model/layer_0/gate/kernel_blocks"}[i]
		_, err = m.Value(name)
		require.NoError(t, err)
		dir := t.TempDir()
		require.NoError(t, network.SaveAdapter(dir, m))
		adapters[i], _ = readFile(t, filepath.Join(dir, "adapter_model.safetensors"))
		dir = t.TempDir()
		require.NoError(t, network.Save(dir, m))
		merged[i], _ = readFile(t, filepath.Join(dir, "model.safetensors"))
		prediction, err := m.PredictBatch(t.Context(), first(t, set))
		require.NoError(t, err)
		logits, err := prediction.Output()
		require.NoError(t, err)
		require.NoError(t, m.Close())
		whole, err := flaxlike.New(t.Context(), opened(t, dir).CausalLM(), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
		require.NoError(t, err)
		prediction, err = whole.PredictBatch(t.Context(), first(t, set))
		require.NoError(t, err)
		saved, err := prediction.Output()
		require.NoError(t, err)
		require.InDeltaSlice(t, logits.Flat, saved.Flat, 1e-4)
		require.NoError(t, whole.Close())
	}
	for _, of := range [][2]map[string]array{adapters, merged} {
		require.Len(t, of[1], len(of[0]))
		for name, want := range of[0] {
			require.InDeltaSlice(t, want.floats(t), of[1][name].floats(t), 1e-5, name)
		}
	}
	require.NotEmpty(t, adapters[0])
}

// Weights in blocks under a policy are an error, not other dtypes in some layers.
func TestQuantized_policy(t *testing.T) {
	m := fitted(t, quantized(t, true).CausalLM(), flaxlike.WithPolicy(optim.MixedBFloat16()))
	_, _, err := m.TestStep(t.Context(), first(t, counting(t, 2, 6)))
	require.ErrorContains(t, err, "Base.Quantized under a policy that computes in BFloat16, which is not implemented: set Base.DType to BFloat16, without a policy")
}

// A generator of weights in blocks has the logits of those in float32. A base without blocks is an error.
func TestQuantized_generator(t *testing.T) {
	prompts, tokens := [][]int32{{5, 6, 7}, {8}}, [][]int32{{9, 10}, {11, 12}}
	var logits [2][][][]float32
	for i := range logits {
		network := quantized(t, i == 1).CausalLM()
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights())
		require.NoError(t, err)
		g, err := network.Generator(state, 2, 8)
		require.NoError(t, err)
		logits[i], err = g.Logits(t.Context(), prompts, tokens)
		require.NoError(t, err)
		require.NoError(t, g.Close())
		require.NoError(t, state.Close())
	}
	for i := range prompts {
		for at := range logits[0][i] {
			require.InDeltaSlice(t, logits[0][i][at], logits[1][i][at], 2e-5)
		}
	}
	base := opened(t, "testdata/gguf/llama.gguf")
	base.Quantized = true
	_, err := flaxlike.New(t.Context(), base.CausalLM(), flaxlike.WithStrategy(host(t)))
	require.ErrorContains(t, err, "Base.Quantized is set, and no tensor is in Q8_0 or Q4_0")
}
