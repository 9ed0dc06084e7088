package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const folders = "../../pretrained/testdata/"

// folderOf returns a copy of a model of the hub, with the tokenizer of the words w0 to w59, and with changes of its
// config.json.
func folderOf(t *testing.T, kind string, oldNew ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), kind)
	require.NoError(t, os.CopyFS(dir, os.DirFS(folders+kind)))
	words, err := os.ReadFile(folders + "tokenizer.json")
	require.NoError(t, err)
	inFolder(t, dir, "tokenizer.json", string(words))
	inFolder(t, dir, "tokenizer_config.json", `{"pad_token": "w7", "model_max_length": 20, "chat_template": "{% for m in messages %}w7 {{ m.content }} w8 {% endfor %}w9"}`)
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	changed := strings.NewReplacer(oldNew...).Replace(string(config))
	require.True(t, len(oldNew) == 0 || changed != string(config))
	inFolder(t, dir, "config.json", changed)
	return dir
}

func inFolder(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// languageModel has the settings of a generation.
func languageModel(t *testing.T) string {
	t.Helper()
	dir := folderOf(t, "qwen3", "Qwen3ForSequenceClassification", "Qwen3ForCausalLM")
	inFolder(t, dir, "generation_config.json", `{"eos_token_id": 2}`)
	return dir
}

func asked(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.Command(lazo, args...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &stdout, &stderr
	_ = c.Run()
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// The content of a folder, of a file .gguf and of an adapter is shown without a plugin, and other folders are errors.
func TestModelShow_pretrained(t *testing.T) {
	dir := folderOf(t, "bert")
	r := run(t, "model", "show", dir)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, `model      BertForSequenceClassification
heads      BertForSequenceClassification
labels     red, green, blue
sizes      bytes 24972, hidden_size 16, intermediate_size 32, max_position_embeddings 28, num_attention_heads 2, num_hidden_layers 2, parameters 6243, tensors 41, tokens 60, vocab_size 60
dtypes     F32
tokenizer  WordLevel with a chat template
`, r.stdout)
	adapter, err := os.ReadFile(folders + "adapter-bert/adapter_config.json")
	require.NoError(t, err)
	inFolder(t, dir, "adapter_config.json", string(adapter))
	r = run(t, "model", "show", dir, "--json")
	require.Zero(t, r.code, r.stderr)
	var is struct {
		Sizes   map[string]int
		Labels  []string
		Adapter map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &is))
	require.Equal(t, 6243, is.Sizes["parameters"])
	require.Equal(t, []string{"red", "green", "blue"}, is.Labels)
	require.Equal(t, "LORA", is.Adapter["peft_type"])
	require.Contains(t, run(t, "model", "show", folders+"adapter-bert").stdout, "adapter    LORA of rank 3, alpha 5")
	require.Contains(t, run(t, "model", "show", folders+"gguf/llama.gguf").stdout, "heads      LlamaForCausalLM\n")
	for want, args := range map[string][]string{
		"has no config.json, expected a folder of the Hugging Face hub or a file .gguf":                     {"show", folders},
		"has an adapter, in adapter_config.json, expected a model alone":                                    {"predict", dir, folders + "tokenizer.json"},
		"is of the class [\"BertForSequenceClassification\"] and has no modules.json, expected a folder of": {"embed", folderOf(t, "bert"), "-"},
		"has the heads [\"BertForSequenceClassification\"], expected one that ends with ForCausalLM":        {"generate", folderOf(t, "bert"), "w1"},
		"lazo model download fetches one of the hub":                                                        {"generate", filepath.Join(dir, "none"), "w1"},
		"--most is for a classifier of texts, and this is a saved model":                                    {"predict", "--most", "3", savedModel, dir},
		"--adapter is for a classifier of texts, and this is a saved model":                                 {"predict", "--adapter", dir, savedModel, dir},
	} {
		r := run(t, append([]string{"model"}, args...)...)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, want)
	}
}
