package pretrained_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// With Recompute, outputs and gradients are as near to transformers' as without.
//
//lazo:norace
func TestRecompute(t *testing.T) {
	for kind, task := range map[string]string{"bert": "ForMaskedLM", "llama": "ForCausalLM", "vit": "Model", "resnet-basic": "Model", "t5": seq2seqLM, "clip": "Model", "whisper": seq2seqLM} {
		t.Run(kind, func(t *testing.T) {
			f := fixtureOf(t, kind)
			base := opened(t, f.folder(t, task))
			base.Recompute = true
			network := tasks[task](base)
			require.Positive(t, f.compareNetwork(t, task, network, network.Rows()))
		})
	}
}

// deep is the folder of a Llama with more layers, copies of the fixture's first.
func deep(t *testing.T, layers int) string {
	t.Helper()
	from := fixtureOf(t, "llama").folder(t, "ForCausalLM")
	all, _ := readFile(t, filepath.Join(from, "model.safetensors"))
	const first, second = "model.layers.0.", "model.layers.1."
	for name, a := range all {
		if !strings.HasPrefix(name, first) {
			continue
		}
		for i := range layers {
			a.Name = strings.Replace(name, first, strings.Replace(second, "1", string(rune('0'+i)), 1), 1)
			all[a.Name] = a
		}
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "model.safetensors"), all)
	config, err := os.ReadFile(filepath.Join(from, "config.json"))
	require.NoError(t, err)
	config = []byte(strings.Replace(string(config), `"num_hidden_layers": 2`, `"num_hidden_layers": `+string(rune('0'+layers)), 1))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
	return dir
}

// With Recompute, a training step of eight layers takes less than half of the memory, also one of LoRA, and has the
// same losses.
//
//lazo:norace
func TestRecompute_memory(t *testing.T) {
	dir := deep(t, 8)
	for _, low := range []bool{false, true} {
		train := func(recompute bool) (temporary int64, losses []float64) {
			base := opened(t, dir)
			base.Recompute = recompute
			network := base.CausalLM()
			if low {
				network = network.LoRA(pretrained.LoRA{Targets: []string{"all-linear"}})
			}
			state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights(), managed.WithOptimizer(optim.New(1e-3, optim.Adam{})))
			require.NoError(t, err)
			defer func() { require.NoError(t, state.Close()) }()
			step := managed.TrainStep(func(b *managed.Builder) {
				logits := network.Outputs(b.Scope().In("model"), b.Field)["logits"]
				b.Loss("loss", graph.ReduceAllMean(graph.Square(logits)))
			})
			defer func() { require.NoError(t, step.Close()) }()
			batch := first(t, counting(t, 32, 40))
			for range 3 {
				_, logs, err := step.Step(t.Context(), state, data.Batch{Size: batch.Size, Fields: batch.Fields[:2]})
				require.NoError(t, err)
				loss, err := logs.Float("loss")
				require.NoError(t, err)
				losses = append(losses, loss)
			}
			memory, err := step.Memory()
			require.NoError(t, err)
			return memory[0].Temporary, losses
		}
		all, want := train(false)
		some, got := train(true)
		require.InEpsilonSlice(t, want, got, 1e-5)
		require.Less(t, float64(some), 0.5*float64(all), "LoRA: %v", low)
		t.Logf("LoRA %v: %d of %d bytes", low, some, all)
	}
}
