package pretrained_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// host runs programs without compiling them.
func host(t *testing.T) strategies.Strategy {
	t.Helper()
	r, err := xla.Open(t.Context(), xla.Go)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return strategies.Jit(r)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// outputsOf runs a network with its weights.
func outputsOf(t *testing.T, network *pretrained.Network, f fixture, batch string) map[string][]float64 {
	t.Helper()
	return outputsOn(t, host(t), network, f, batch)
}

func outputsOn(t *testing.T, on strategies.Strategy, network *pretrained.Network, f fixture, batch string) map[string][]float64 {
	t.Helper()
	state, err := managed.New(on, network.Weights())
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	var names []string
	step := managed.TestStep(func(b *managed.Builder) {
		out := network.Outputs(b.Scope().In("model"), b.Field)
		names = sortedKeys(out)
		for name, v := range out {
			b.Output(name, graph.ConvertDType(v, 11)) // float32
		}
	})
	defer func() { require.NoError(t, step.Close()) }()
	_, logs, err := step.Step(t.Context(), state, f.batch(t, batch, "none"))
	require.NoError(t, err)
	all := map[string][]float64{}
	for _, name := range names {
		got, err := managed.Array(logs, name)
		require.NoError(t, err)
		all[name] = widened(got.Flat.([]float32))
	}
	return all
}

const modulesText = `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`

// Each pooling of sentence-transformers gives its numbers, by the old and the new form of its config.
func TestEmbedder(t *testing.T) {
	f := fixtureOf(t, "bert")
	dir := f.folder(t, "Model")
	old := map[string]string{"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
		"weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}
	embed := func() []float64 {
		base, err := pretrained.Open(t.Context(), dir)
		require.NoError(t, err)
		return outputsOf(t, base.Embedder(), f, "hole")["sentence_embedding"]
	}
	poolings := f.under("pool/")
	require.Len(t, poolings, 7)
	f.near(t, "pool/mean", embed(), poolings["mean"]) // without files of sentence-transformers
	require.NotEmpty(t, outputsOf(t, opened(t, "testdata/gguf/llama.gguf").Embedder(), fixtureOf(t, "llama"), "hole")["sentence_embedding"])
	write(t, dir, "modules.json", modulesText)
	for mode, want := range poolings {
		of := map[string]any{}
		for _, part := range strings.Split(mode, "+") {
			of["pooling_mode_"+old[part]] = true
		}
		text, err := json.Marshal(of)
		require.NoError(t, err)
		write(t, dir, "1_Pooling/config.json", string(text))
		f.near(t, "pool/"+mode, embed(), want)
		text, err = json.Marshal(map[string]any{"pooling_mode": strings.Split(mode, "+"), "include_prompt": true})
		require.NoError(t, err)
		write(t, dir, "1_Pooling/config.json", string(text))
		f.near(t, "pool/"+mode, embed(), want)
	}
	write(t, dir, "1_Pooling/config.json", `{"pooling_mode": "mean"}`)
	write(t, dir, "modules.json", strings.Replace(modulesText, "}]", `}, {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`, 1))
	unit := embed()
	for row := 0; row < len(unit); row += 16 {
		sum := 0.0
		for _, x := range unit[row : row+16] {
			sum += x * x
		}
		require.InDelta(t, 1, sum, 1e-5)
	}
	for want, files := range map[string][2]string{
		`modules.json: module 2 is "models.Dense" in "2_Dense", expected Transformer`: {strings.Replace(modulesText, "}]", `}, {"path": "2_Dense", "type": "models.Dense"}]`, 1), `{}`},
		`modules.json: module 1 is "x.Pooling" in "../1_Pooling"`:                     {`[{"path": "", "type": "x.Transformer"}, {"path": "../1_Pooling", "type": "x.Pooling"}]`, `{}`},
		`modules.json: module 0 is "" in ""`:                                          {strings.Replace(modulesText, `"type"`, `"Type"`, 1), `{}`},
		`modules.json: an object has "path" twice`:                                    {strings.Replace(modulesText, `"path"`, `"path": "", "path"`, 1), `{}`},
		`modules.json lists no module Pooling`:                                        {`[]`, `{}`},
		`include_prompt is "false", expected true`:                                    {modulesText, `{"include_prompt": false}`},
		`include_prompt is "false", expected true: a pooling without`:                 {modulesText, `{"include_prompt": false, "pooling_mode": "mean"}`},
		`include_prompt is "false", expected true: a pooling`:                         {modulesText, `{"include_prompt": false, "pooling_mode": ["mean"]}`},
		`include_prompt is "0", expected true or false`:                               {modulesText, `{"include_prompt": 0, "pooling_mode": "mean"}`},
		`pooling_mode is "[]", expected one or several of cls`:                        {modulesText, `{"pooling_mode": []}`},
		`pooling_mode is "\"\"", expected one or several`:                             {modulesText, `{"pooling_mode": ""}`},
		`pooling_mode is "3", expected a list of texts`:                               {modulesText, `{"pooling_mode": 3}`},
		`expected one or several of cls, max, mean`:                                   {modulesText, `{"pooling_mode": "median"}`},
	} {
		write(t, dir, "modules.json", files[0])
		write(t, dir, "1_Pooling/config.json", files[1])
		base, err := pretrained.Open(t.Context(), dir)
		require.NoError(t, err)
		_, err = managed.New(host(t), base.Embedder().Weights())
		require.ErrorContains(t, err, want)
	}
	write(t, dir, "modules.json", modulesText)
	write(t, dir, "1_Pooling/config.json", `{"pooling_mode": "mean"}`)
	write(t, dir, "config_sentence_transformers.json", `{"prompts": {"q": "query: "}, "default_prompt_name": null}`)
	require.Len(t, embed(), len(unit))
	write(t, dir, "config_sentence_transformers.json", `{"prompts": {"q": "query: "}, "default_prompt_name": "q"}`)
	base, err := pretrained.Open(t.Context(), dir)
	require.NoError(t, err)
	_, err = managed.New(host(t), base.Embedder().Weights())
	require.ErrorContains(t, err, `config_sentence_transformers.json: default_prompt_name is "\"q\"", expected null: put the prompt before the texts`)
	write(t, dir, "1_Pooling/config.json", `{"pooling_mode": "mean", "include_prompt": false}`)
	_, err = managed.New(host(t), opened(t, dir).Embedder().Weights())
	require.ErrorContains(t, err, "include_prompt is", "the advice on the prompt would be wrong")
}

// Settings of sentence-transformers' module Transformer that would change tokens or numbers are errors. do_lower_case
// changes nothing if the tokenizer lower-cases.
func TestEmbedder_settings(t *testing.T) {
	dir := withTokenizer(t, "bert")
	write(t, dir, "modules.json", modulesText)
	write(t, dir, "1_Pooling/config.json", `{"pooling_mode": "mean"}`)
	embed := func() error {
		_, err := managed.New(host(t), opened(t, dir).Embedder().Weights())
		return err
	}
	words, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	require.NoError(t, err)
	normalized := func(normalizer string) {
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(words, &fields))
		fields["normalizer"] = json.RawMessage(normalizer)
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		write(t, dir, "tokenizer.json", string(text))
	}
	const bert = `{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": `
	for _, name := range []string{"sentence_roberta_config.json", "sentence_bert_config.json"} {
		write(t, dir, name, `{"max_seq_length": 12, "do_lower_case": true}`)
		for normalizer, lowers := range map[string]bool{
			`null`:                  false,
			`{"type": "NFC"}`:       false,
			bert + `false}`:         false,
			bert + `true}`:          true,
			`{"type": "Lowercase"}`: true,
			`{"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "NFC"}]}`: true,
			`{"type": "Sequence", "normalizers": [{"type": "NFC"}]}`:                        false,
			`{"type": "Sequence", "normalizers": [{"type": "NFC"}, ` + bert + `true}]}`:     false, // sentence-transformers lower-cases before NFC
		} {
			normalized(normalizer)
			if err := embed(); lowers {
				require.NoError(t, err, normalizer)
			} else {
				require.ErrorContains(t, err, name+`: do_lower_case is "true", expected false, or a tokenizer.json that lower-cases`, normalizer)
				require.Contains(t, strings.Join(opened(t, dir).Describe().Refused, " "), "do_lower_case")
			}
		}
	}
	for settings, want := range map[string]string{
		`{"max_seq_length": null, "do_lower_case": false, "unpad_inputs": true}`: "",
		`{"transformer_task": "feature-extraction", "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}, "module_output_name": "token_embeddings"}`: "",
		`{"model_args": {"add_pooling_layer": false}, "tokenizer_args": {}, "config_args": {}}`:                                                                                               "",
		`{"transformer_task": "fill-mask"}`:                                                    "transformer_task is",
		`{"module_output_name": "scores"}`:                                                     "module_output_name is",
		`{"modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}}`: "expected the text by the method forward",
		`{"query_length": 8}`:                                                                  "query_length is",
		`{"tokenizer_args": {"use_fast": false}}`:                                              "tokenizer_args is",
		`{"do_lower_case": 1}`:                                                                 `do_lower_case is "1", expected true or false`,
		`{"Do_Lower_Case": true}`:                                                              `Do_Lower_Case is "true", expected a field that lazo knows`,
	} {
		write(t, dir, "sentence_bert_config.json", settings)
		if err := embed(); want == "" {
			require.NoError(t, err, settings)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}
