package pretrained_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained"
)

func clipWith(t *testing.T, fields map[string]any) string {
	t.Helper()
	all := map[string]any{"vocab_size": 60, "hidden_size": 8, "intermediate_size": 10, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 28}
	for name, value := range fields {
		all[name] = value
	}
	return folderOf(t, "clip", map[string]any{"text_config_dict": all})
}

// In files of the id 2 the token of the greatest id ends a text. The fields in text_config_dict count, with standards
// for those that it lacks.
func TestCLIP_ends(t *testing.T) {
	f := fixtureOf(t, "clip")
	ids := f.all["in/long/input_ids"]
	values, err := safetensors.Values[int32](ids.data)
	require.NoError(t, err)
	for i := range values {
		if values[i] == 59 {
			values[i] = 7
		}
	}
	for row, at := range []int{4, 8, 1} {
		values[row*25+at] = 59
	}
	ids.data = safetensors.Bytes(values)
	f.all["in/long/input_ids"] = ids
	of := func(end int) []float64 {
		return outputsOf(t, opened(t, clipWith(t, map[string]any{"eos_token_id": end})).Hidden(), f, "long")["text_embeds"]
	}
	require.Equal(t, of(59), of(2))
	require.NotEqual(t, of(59), of(40))
}

// Save writes the folder's tensors again. CLIP has neither a hidden state nor heads.
func TestCLIP(t *testing.T) {
	f := fixtureOf(t, "clip")
	base := opened(t, "testdata/clip")
	network := base.Hidden()
	m, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	require.NoError(t, m.Init(t.Context(), f.batch(t, "hole", "none")))
	dir := t.TempDir()
	require.NoError(t, network.Save(dir, m))
	was, _ := readFile(t, "testdata/clip/model.safetensors")
	is, _ := readFile(t, filepath.Join(dir, "model.safetensors"))
	require.Equal(t, was, is)
	for _, network := range []*pretrained.Network{base.Classifier(2), base.CausalLM(), base.Embedder(), base.Head(nil)} {
		_, err = flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
		require.ErrorContains(t, err, "pretrained: the network")
	}
	for want, fields := range map[string]map[string]any{
		`expected a divisor of hidden_size, 9`:                       {"hidden_size": 9},
		`num_attention_heads is "3", expected a divisor`:             {"num_attention_heads": 3},
		`num_hidden_layers is "1073741824", expected at most 1000`:   {"num_hidden_layers": 1 << 30},
		`eos_token_id is "[2]", expected a whole number`:             {"eos_token_id": []int{2}},
		`has no tensor "text_model.encoder.layers.1.self_attn.q_pro`: {"num_hidden_layers": 2},
		`has the shape [28 8], expected [77 8]`:                      {"max_position_embeddings": nil},
	} {
		_, err := pretrained.Open(t.Context(), clipWith(t, fields))
		require.ErrorContains(t, err, want)
	}
}

//lazo:norace
func TestCLIP_numbers(t *testing.T) { numbers(t, "clip") }
