package examples

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// tinyLlama writes a random model of 300 tokens with a tokenizer.
func tinyLlama(t *testing.T, lines []string) (folder string) {
	t.Helper()
	const width, inner, vocabulary = 32, 64, 300
	folder = t.TempDir()
	write := func(name string, value any) {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	tokens, err := text.BPETraining{Size: vocabulary, Special: []string{"<end>"}}.Train(data.Items(lines))
	require.NoError(t, err)
	write("tokenizer.json", tokens)
	write("tokenizer_config.json", map[string]any{"eos_token": "<end>"})
	write("config.json", map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "hidden_size": width, "intermediate_size": inner,
		"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": vocabulary, "max_position_embeddings": 128, "tie_word_embeddings": false})
	dims := map[string][]int{"model.embed_tokens": {vocabulary, width}, "lm_head": {vocabulary, width}, "model.norm": {width}}
	for i := range 2 {
		for name, of := range map[string][]int{"input_layernorm": {width}, "post_attention_layernorm": {width}, "self_attn.q_proj": {width, width},
			"self_attn.k_proj": {width, width}, "self_attn.v_proj": {width, width}, "self_attn.o_proj": {width, width},
			"mlp.gate_proj": {inner, width}, "mlp.up_proj": {inner, width}, "mlp.down_proj": {width, inner}} {
			dims[fmt.Sprintf("model.layers.%d.%s", i, name)] = of
		}
	}
	var list []safetensors.Tensor
	for name, of := range dims {
		list = append(list, safetensors.Tensor{Name: name + ".weight", DType: safetensors.F32, Dims: of})
	}
	safetensors.Sort(list)
	file, err := os.Create(filepath.Join(folder, "model.safetensors"))
	require.NoError(t, err)
	out, err := safetensors.NewWriter(file, list, nil)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 1))
	for _, of := range list {
		values := make([]float32, 1)
		for _, n := range of.Dims {
			values = make([]float32, len(values)*n)
		}
		for i := range values {
			if values[i] = 1; len(of.Dims) > 1 {
				values[i] = float32(0.3 * random.NormFloat64())
			}
		}
		_, err := out.Write(of.Name, safetensors.Bytes(values))
		require.NoError(t, err)
	}
	require.NoError(t, out.Close())
	require.NoError(t, file.Close())
	return folder
}

// Fine-tuned on a few sentences, a random model completes each of them.
func TestLoRA(t *testing.T) {
	short(t, "lora")
	lines := []string{"the sun is yellow", "the sea is blue", "grass is green", "a rose is red"}
	folder, out := tinyLlama(t, lines), t.TempDir()
	file := filepath.Join(out, "lines.txt")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	text, stderr := said(t, plugintest.Program(t, "lora"), "-text", file, "-adapter", filepath.Join(out, "adapter"), "-epochs", "60", "-rate", "0.01", "-prompt", "the sea", folder)
	n := numbersOf(t, `^loss: (\S+) at first, (\S+) at last\nthe sea is blue\n$`, text)
	require.Greater(t, n[0], 4.0)
	require.Less(t, n[1], 0.2)
	require.Contains(t, stderr, "epoch 60/60 - ")
	for _, name := range []string{"adapter_config.json", "adapter_model.safetensors"} {
		require.FileExists(t, filepath.Join(out, "adapter", name))
	}
	t.Logf("%d lines of code; loss %.2f to %.3f", linesOf(t, "lora/main.go"), n[0], n[1])
}
