package pretrained_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained"
)

// folderWith returns testdata/bert with fields of config.json changed; nil removes one.
func folderWith(t *testing.T, fields map[string]any) string { return folderOf(t, "bert", fields) }

func folderOf(t *testing.T, kind string, fields map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata", kind, "config.json"))
	require.NoError(t, err)
	all := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &all))
	for name, value := range fields {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	text, err = json.Marshal(all)
	require.NoError(t, err)
	write(t, dir, "config.json", string(text))
	weights, err := os.ReadFile(filepath.Join("testdata", kind, "model.safetensors"))
	require.NoError(t, err)
	write(t, dir, "model.safetensors", string(weights))
	return dir
}

// So are those of other architectures.
func TestOpen_hostileConfigsOf(t *testing.T) {
	for _, row := range []struct {
		kind, field string
		value       any
		want        string
	}{
		{"gpt2", "scale_attn_weights", false, `scale_attn_weights is "false", expected true: other values are not implemented`},
		{"gpt2", "scale_attn_by_inverse_layer_idx", true, `scale_attn_by_inverse_layer_idx is "true", expected false`},
		{"gpt2", "reorder_and_upcast_attn", true, `reorder_and_upcast_attn is "true", expected false`},
		{"gpt2", "add_cross_attention", true, `add_cross_attention is "true", expected false`},
		{"gpt2", "n_head", 3, `n_head is "3", expected a divisor of n_embd, 4`},
		{"gpt2", "n_inner", 8, `the tensor "transformer.h.0.mlp.c_fc.weight" has the shape [4 16], expected [4 8] by config.json`},
		{"gpt2", "n_positions", nil, `n_positions is "", expected a whole number`},
		{"gemma2", "use_bidirectional_attention", true, `use_bidirectional_attention is "true", expected false`},
		{"gemma2", "sliding_window", json.RawMessage("null"), `sliding_window is "null", expected a number of places`},
		{"gemma2", "attn_logit_softcapping", -1, `attn_logit_softcapping is "-1", expected a number above 0`},
		{"gemma2", "final_logit_softcapping", "30", `final_logit_softcapping is "\"30\"", expected a number above 0`},
		{"gemma2", "query_pre_attn_scalar", 0, `query_pre_attn_scalar is "0", expected a number above 0`},
		{"gemma2", "layer_types", []string{"full_attention"}, `expected a kind for each of 2 layers`},
		{"gemma2", "head_dim", 5, `head_dim is "5", expected an even number`},
		{"gemma2", "rope_parameters", map[string]any{"full_attention": map[string]any{}}, `full_attention is "{}", expected none`},
		{"gemma3", "attn_logit_softcapping", 50, `attn_logit_softcapping is "50", expected none: the field is not implemented`},
		{"gemma3", "rope_parameters", map[string]any{"rope_theta": 100}, `rope_parameters: config.json: rope_theta is "100", expected none`},
		{"gemma3", "rope_parameters", map[string]any{"sliding_attention": map[string]any{"rope_type": "yarn"}}, `rope_type is "\"yarn\"", expected "default", "linear" or "llama3"`},
		{"gemma3", "rope_scaling", map[string]any{"rope_type": "linear", "factor": 2}, `expected none: the field is not implemented`},
		{"gemma3", "sliding_window_pattern", 0, `sliding_window_pattern is "0", expected a whole number from 1`},
		{"vit", "qkv_bias", false, `qkv_bias is "false", expected true`},
		{"vit", "pooler_act", "relu", `pooler_act is "\"relu\"", expected "tanh"`},
		{"vit", "pooler_output_size", 9, `pooler_output_size is "9", expected 4, as hidden_size`},
		{"vit", "image_size", []int{8, 9, 10}, `image_size is "[8,9,10]", expected a whole number`},
		{"vit", "image_size", []int{8, -1}, `image_size is "[8,-1]", expected a whole number from 1 to 1073741824, or two`},
		{"vit", "image_size", 1 << 30, `the tensor "vit.embeddings.position_embeddings" has the shape [1 9 4], expected [1 96076791961092097 4]`},
		{"vit", "patch_size", 9, `patch_size is "9", expected at most image_size, 8 by 12`},
		{"vit", "num_channels", 1, `has the shape [4 3 4 3], expected [4 1 4 3]`},
		{"resnet", "layer_type", "wide", `layer_type is "\"wide\"", expected "bottleneck"`},
		{"resnet", "depths", []int{1}, `depths is "[1]", expected a number for each of the hidden_sizes`},
		{"resnet", "depths", []int{1, 1 << 30}, `expected a list of whole numbers from 1 to 1000`},
		{"resnet", "depths", []int{1, 3}, `the folder has no tensor "resnet.encoder.stages.1.layers.2.layer.0.convolution.weight"`},
		{"resnet", "hidden_sizes", []int{8, 2}, `expected at least 4 for each stage of bottlenecks`},
		{"resnet", "hidden_sizes", []int{}, `hidden_sizes is "[]", expected a list of whole numbers`},
		{"resnet", "embedding_size", 5, `has the shape [4 3 7 7], expected [5 3 7 7]`},
		{"t5", "is_encoder_decoder", false, `is_encoder_decoder is "false", expected true`},
		{"t5", "feed_forward_proj", "gated-laplace", `feed_forward_proj is "\"gated-laplace\"", expected an activation, or gated- and an activation`},
		{"t5", "dense_act_fn", "gelu", `dense_act_fn is "\"gelu\"", expected "relu"`},
		{"t5", "is_gated_act", true, `is_gated_act is "true", expected false`},
		{"t5", "relative_attention_num_buckets", 30, `relative_attention_num_buckets is "30", expected a multiple of 4`},
		{"t5", "num_decoder_layers", 1 << 30, `expected at most 1000`},
		{"t5", "num_decoder_layers", 3, `the folder has no tensor "decoder.block.2.layer.0.SelfAttention.q.weight"`},
		{"t5", "d_kv", 1 << 30, `heads of at most 16384`},
		{"t5-gated", "scale_decoder_outputs", true, `expected false: the folder has the tensor "lm_head.weight"`},
		{"whisper", "apply_spec_augment", true, `apply_spec_augment is "true", expected false`},
		{"whisper", "activation_dropout", 0.1, `activation_dropout is "0.1", expected 0.0`},
		{"whisper", "tie_word_embeddings", false, `tie_word_embeddings is "false", expected true`},
		{"whisper", "decoder_layers", 1 << 30, `decoder_layers is "1073741824", expected at most 1000`},
		{"whisper", "encoder_attention_heads", 3, `encoder_attention_heads is "3", expected a divisor of d_model, 4`},
		{"whisper", "num_mel_bins", 6, `has the shape [4 5 3], expected [4 6 3]`},
		{"whisper", "max_source_positions", 7, `has the shape [6 4], expected [7 4]`},
		{"gpt2", "n_embd", 1 << 30, `has the shape [60 4], expected [60 1073741824] by config.json`},
	} {
		_, err := pretrained.Open(t.Context(), folderOf(t, row.kind, map[string]any{row.field: row.value}))
		require.ErrorContains(t, err, row.want, "%s %s %v", row.kind, row.field, row.value)
	}
}

// Fields of config.json that are wrong, or that would change numbers, are errors by name, before much is allocated.
func TestOpen_hostileConfigs(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, row := range []struct {
		field string
		value any
		want  string
	}{
		{"model_type", "gpt5", `model_type is "\"gpt5\"", expected one of ["bert" "clip" "distilbert" "gemma2" "gemma3_text" "gpt2" "llama" "mistral" "mpnet" "qwen2" "qwen3" "resnet" "roberta" "t5" "vit" "whisper" "xlm-roberta"]`},
		{"model_type", nil, `model_type is "", expected one of`},
		{"hidden_size", 1 << 40, `hidden_size is "1099511627776", expected a whole number from 1 to 1073741824`},
		{"hidden_size", -16, `hidden_size is "-16", expected a whole number`},
		{"hidden_size", 0, `hidden_size is "0"`},
		{"hidden_size", 16.5, `hidden_size is "16.5"`},
		{"hidden_size", "16", `hidden_size is "\"16\""`},
		{"hidden_size", nil, `hidden_size is "", expected a whole number`},
		{"hidden_size", 1 << 30, `the tensor "bert.embeddings.word_embeddings.weight" has the shape [60 16], expected [60 1073741824] by config.json`},
		{"vocab_size", 1 << 30, `has the shape [60 16], expected [1073741824 16] by config.json`},
		{"num_hidden_layers", 1_000_000_000, `the model has 1000000000 layers, and the folder only 41 tensors`},
		{"num_hidden_layers", 3, `the folder has no tensor "bert.encoder.layer.2.attention.self.query.weight"`},
		{"num_hidden_layers", 3, "layer.2.attention.self.key.weight\"\nand 13 more"},
		{"num_attention_heads", 3, `num_attention_heads is "3", expected a divisor of hidden_size, 16`},
		{"max_position_embeddings", 29, `the tensor "bert.embeddings.position_embeddings.weight" has the shape [28 16], expected [29 16]`},
		{"layer_norm_eps", 0, `layer_norm_eps is "0", expected a number above 0`},
		{"hidden_dropout_prob", 1, `hidden_dropout_prob is "1", expected a number from 0 to below 1`},
		{"hidden_act", "laplace", `hidden_act is "\"laplace\"", expected one of`},
		{"position_embedding_type", "relative_key", `position_embedding_type is "\"relative_key\"", expected "absolute": other values are not implemented`},
		{"is_decoder", true, `is_decoder is "true", expected false`},
		{"add_cross_attention", true, `add_cross_attention is "true", expected false`},
		{"pruned_heads", map[string][]int{"0": {1}}, `pruned_heads is "{\"0\":[1]}", expected {}`},
		{"quantization_config", map[string]int{"bits": 4}, `quantization_config is "{\"bits\":4}", expected none: the field is not implemented`},
		{"pad_token_id", 60, `pad_token_id is "60", expected a whole number from 0 to 59`},
		{"tie_word_embeddings", "no", `tie_word_embeddings is "\"no\"", expected true or false`},
		{"architectures", "Bert", `architectures is "\"Bert\"", expected a list of texts`},
		{"id2label", map[string]string{"0": "a", "2": "b"}, `expected a name for each class from 0 to 1`},
		{"id2label", []string{"a"}, `expected an object of names`},
		{"id2label", map[string]any{"0": nil}, `expected an object of names`},
		{"architectures", []any{"BertModel", nil}, `expected a list of texts`},
		{"num_labels", 5, `num_labels is "5", expected 3, the number of names in id2label`},
	} {
		_, err := pretrained.Open(t.Context(), folderWith(t, map[string]any{row.field: row.value}))
		require.ErrorContains(t, err, row.want, "%s %v", row.field, row.value)
	}
	_, err := pretrained.Open(t.Context(), folderWith(t, map[string]any{"id2label": nil, "num_labels": 1 << 24}))
	require.ErrorContains(t, err, `num_labels is "16777216", expected at most 65536 without names in id2label`)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	for text, want := range map[string]string{"[]": "config.json: json: cannot unmarshal array", "null": "config.json: it is null, expected an object",
		`{"a": [{"b": {}, "c": [{}], "b": 1}]}`: `config.json: an object has "b" twice`, `{"a": {}, "b": {"a": {}}, "a": 1}`: `config.json: an object has "a" twice`,
		`{"Model_type": "bert"}`: `model_type is ""`,
		"{":                      "config.json: unexpected end", "": "config.json: unexpected end"} {
		dir := folderWith(t, nil)
		write(t, dir, "config.json", text)
		_, err := pretrained.Open(t.Context(), dir)
		require.ErrorContains(t, err, want)
	}
	_, err = pretrained.Open(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// parts writes the tensors of testdata/bert into two shards.
func parts(t *testing.T) (dir string, list map[string]string) {
	t.Helper()
	dir = folderWith(t, nil)
	all, _ := readFile(t, "testdata/bert/model.safetensors")
	require.NoError(t, os.Remove(filepath.Join(dir, "model.safetensors")))
	shards, list := [2]map[string]array{{}, {}}, map[string]string{}
	names := [2]string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
	for i, name := range sortedKeys(all) {
		shards[i%2][name], list[name] = all[name], names[i%2]
	}
	for i, name := range names {
		writeFile(t, filepath.Join(dir, name), shards[i])
	}
	return dir, list
}
