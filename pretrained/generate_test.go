package pretrained_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// Each generated token has the greatest logit of the network for the whole text, for prompts of several lengths one
// after another. The same seed draws the same tokens.
func TestGenerate(t *testing.T) {
	for _, kind := range []string{"llama3", "mistral", "gpt2", "gemma2", "gemma3"} {
		f := fixtureOf(t, kind)
		network := opened(t, f.folder(t, "ForCausalLM")).CausalLM()
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights())
		require.NoError(t, err)
		const places = 20
		g, err := network.Generator(state, places)
		require.NoError(t, err)
		whole := managed.TestStep(func(b *managed.Builder) {
			b.Output("logits", network.Outputs(b.Scope().In("model"), b.Field)["logits"])
		})
		collect := func(prompt []int32, of pretrained.Generation) (all []int32) {
			for id, err := range g.Generate(t.Context(), prompt, of) {
				require.NoError(t, err)
				all = append(all, id)
			}
			return all
		}
		for _, prompt := range [][]int32{{7, 8, 9, 10, 11, 12}, {20, 30, 40}, {5}} {
			got := collect(prompt, pretrained.Generation{})
			require.Len(t, got, places-len(prompt)+1)
			ids := append(slices.Clone(prompt), got[:len(got)-1]...)
			mask := make([]int32, places)
			for i := range mask {
				mask[i] = 1
			}
			_, logs, err := whole.Step(t.Context(), state, data.Batch{Size: 1, Fields: []data.Field{
				data.Named("input_ids", ids, 1, places), data.Named("attention_mask", mask, 1, places)}})
			require.NoError(t, err)
			logits, err := managed.Array(logs, "logits")
			require.NoError(t, err)
			for i, id := range got {
				row := logits.Flat.([]float32)[(len(prompt)-1+i)*60:][:60]
				require.InDelta(t, slices.Max(row), row[id], 1e-4, "%s, prompt of %d, token %d", kind, len(prompt), i)
			}
			require.Equal(t, got[:3], collect(prompt, pretrained.Generation{Most: 3}))
			end := slices.Index(got, got[4])
			require.Equal(t, got[:end+1], collect(prompt, pretrained.Generation{Stop: []int32{got[4]}}))
		}
		sampled := pretrained.Generation{Sampling: text.Sampling{Temperature: 3}, Seed: 4}
		require.Equal(t, collect([]int32{7}, sampled), collect([]int32{7}, sampled))
		for _, prompt := range [][]int32{nil, make([]int32, places+1)} {
			for _, err := range g.Generate(t.Context(), prompt, pretrained.Generation{}) {
				require.ErrorContains(t, err, "expected 1 to 20 tokens")
			}
		}
		require.NoError(t, g.Close())
		require.NoError(t, whole.Close())
		require.NoError(t, state.Close())
	}
	_, err := opened(t, fixtureOf(t, "gpt2").folder(t, "ForCausalLM")).CausalLM().Generator(nil, 29)
	require.ErrorContains(t, err, "a generator for 29 places, expected at most 28, for which the network has positions")
	_, err = opened(t, "testdata/llama").Hidden().Generator(nil, 3)
	require.ErrorContains(t, err, "expected one of CausalLM")
}
