package pretrained_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained"
)

// changed returns a folder of testdata with other texts in config.json.
func changed(t *testing.T, kind string, oldNew ...string) string {
	t.Helper()
	dir := withTokenizer(t, kind)
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	write(t, dir, "config.json", strings.NewReplacer(oldNew...).Replace(string(config)))
	return dir
}

// A head is listed if the class names it and the folder has its weights.
func TestBase_describe(t *testing.T) {
	is := opened(t, withTokenizer(t, "bert")).Describe()
	require.Equal(t, []string{"BertForSequenceClassification"}, is.Heads)
	require.Equal(t, []string{"red", "green", "blue"}, is.Labels)
	require.Equal(t, "WordLevel", is.Tokenizer)
	require.Equal(t, 4*6243, is.Sizes["bytes"])
	require.Empty(t, is.Refused)
	is = opened(t, changed(t, "bert", "BertForSequenceClassification", "BertForMaskedLM")).Describe()
	require.Empty(t, is.Heads, "its weights are missing")
	require.Empty(t, is.Labels)
	require.Contains(t, is.String(), "heads      none\n")
	for kind, want := range map[string]int{"qwen3": 1, "qwen2": 0} { // embeddings tied to the output, and without one
		class := map[string]string{"qwen3": "Qwen3", "qwen2": "Qwen2"}[kind]
		require.Len(t, opened(t, changed(t, kind, class+"ForSequenceClassification", class+"ForCausalLM")).Describe().Heads, want)
	}
	dir := withTokenizer(t, "bert")
	write(t, dir, "sentence_bert_config.json", `{"max_seq_length": 7}`)
	write(t, dir, "modules.json", `[{"path": "", "type": "a.Transformer"}, {"path": "1_Pooling", "type": "a.Pooling"}, {"path": "2", "type": "a.Dense"}]`)
	write(t, dir, "1_Pooling/config.json", `{"pooling_mode_cls_token": true}`)
	is = opened(t, dir).Describe()
	require.Equal(t, 7, is.Sizes["max_seq_length"])
	require.Len(t, is.Refused, 1)
	require.Contains(t, is.String(), `refused    modules.json: module 2 is "a.Dense"`)
	write(t, dir, "modules.json", `[{"path": "", "type": "a.Transformer"}, {"path": "1_Pooling", "type": "a.Pooling"}, {"path": "2", "type": "a.Normalize"}]`)
	require.Equal(t, []string{"cls", "normalize"}, opened(t, dir).Describe().Pooling)
}

// The folder's own network has the head of its class, and is saved without a device as it was, or in another dtype.
func TestBase_network(t *testing.T) {
	for _, kind := range kinds {
		from, dir := filepath.Join("testdata", kind), t.TempDir()
		was, _ := readFile(t, filepath.Join(from, "model.safetensors"))
		require.NoError(t, opened(t, from).Network().Save(dir, nil))
		is, _ := readFile(t, filepath.Join(dir, "model.safetensors"))
		require.Equal(t, was, is)
		base := opened(t, from)
		base.DType = dtypes.BFloat16
		require.NoError(t, base.Network().Save(dir, nil))
		half := opened(t, dir)
		require.Equal(t, dtypes.BFloat16, half.DType)
		require.Equal(t, 2*half.Describe().Sizes["bytes"], base.Describe().Sizes["bytes"])
	}
	for class, want := range map[string]string{"BertForPreTraining": "BertForMaskedLM", "BertModel": "BertModel", "BertForMaskedLM": "BertForMaskedLM",
		"BertForTokenClassification": "BertForTokenClassification", "BertForQuestionAnswering": "BertForQuestionAnswering"} {
		network := opened(t, changed(t, "bert", "BertForSequenceClassification", class)).Network()
		require.Equal(t, want, network.Class())
	}
	base := opened(t, changed(t, "bert", "BertForSequenceClassification", "Other"))
	require.ErrorContains(t, base.Network().Save(t.TempDir(), nil), `pretrained: the network of `)
	require.ErrorContains(t, base.Network().Save(t.TempDir(), nil), `architectures in config.json is ["Other"], expected a class such as "BertModel"`)

	base = opened(t, "testdata/bert")
	require.ErrorContains(t, base.Classifier(5).Save(t.TempDir(), nil), "the variable /model/classifier/")
	with := base.Classifier(0).LoRA(pretrained.LoRA{Rank: 2, Targets: []string{"query"}})
	require.ErrorContains(t, with.Save(t.TempDir(), nil), "expected a model with its values")

	// The files of sentence-transformers are those of the folder.
	dir, to := changed(t, "bert", "BertForSequenceClassification", "BertModel"), t.TempDir()
	write(t, dir, "modules.json", `[{"path": "", "type": "a.Transformer"}, {"path": "1_Pooling", "type": "a.Pooling"}]`)
	write(t, dir, "1_Pooling/config.json", `{"pooling_mode_cls_token": true}`)
	require.NoError(t, opened(t, dir).Network().Save(to, nil))
	require.FileExists(t, filepath.Join(to, "1_Pooling", "config.json"))
	require.FileExists(t, filepath.Join(to, "tokenizer.json"))
}
