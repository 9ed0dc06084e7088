package pretrained_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/pretrained"
)

// Settings are those with which transformers generates.
func TestGeneration(t *testing.T) {
	dir := fixtureOf(t, "llama").folder(t, "ForCausalLM")
	base := opened(t, dir)
	of, err := base.Generation()
	require.NoError(t, err)
	require.Equal(t, pretrained.Generation{Stop: []int32{2}}, of, "of config.json")
	for file, want := range map[string]pretrained.Generation{
		`{}`: {},
		`{"eos_token_id": [5, 7], "temperature": 0.6, "top_p": 0.9, "max_length": 20, "transformers_version": "5.23.0", "min_length": 0}`: {Stop: []int32{5, 7}},
		`{"do_sample": true}`: {Sampling: text.Sampling{Temperature: 1, TopK: 50, TopP: 1}},
		`{"do_sample": true, "temperature": 0.6, "top_k": 0, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.1, "max_new_tokens": 9, "stop_strings": ["x"]}`: {
			Sampling: text.Sampling{Temperature: 0.6, TopP: 0.9, MinP: 0.05, Repetition: 1.1}, Most: 9, StopTexts: []string{"x"}},
		`{"do_sample": true, "top_p": 0.0, "top_k": null}`:                                                     {Sampling: text.Sampling{Temperature: 1, TopP: math.SmallestNonzeroFloat64}},
		`{"repetition_penalty": 1.0, "top_k": 20, "do_sample": false, "stop_strings": "x", "eos_token_id": 0}`: {StopTexts: []string{"x"}, Stop: []int32{0}},
		`{"num_beams": 4}`: {Beams: pretrained.Beams{Count: 4, LengthPenalty: 1}},
		`{"num_beams": 4, "length_penalty": -0.5, "early_stopping": "never"}`:                 {Beams: pretrained.Beams{Count: 4, LengthPenalty: -0.5, Early: "never"}},
		`{"num_beams": 2, "early_stopping": true, "typical_p": 1.0, "suppress_tokens": null}`: {Beams: pretrained.Beams{Count: 2, LengthPenalty: 1, Early: "first"}},
	} {
		write(t, dir, "generation_config.json", file)
		got, err := base.Generation()
		require.NoError(t, err, file)
		require.Equal(t, want, got, file)
	}
	for file, message := range map[string]string{
		`{"no_repeat_ngram_size": 2}`:             `generation_config.json: no_repeat_ngram_size is "2", expected 0: other values are not implemented`,
		`{"suppress_tokens": [1]}`:                "suppress_tokens is",
		`{"guidance_scale": 2.5}`:                 "guidance_scale is",
		`{"repetition": 2}`:                       "repetition is \"2\", expected a field that lazo knows",
		`{"eos_token_id": [1, -1]}`:               "the number of a token, or a list of such numbers",
		`{"do_sample": 1}`:                        "true or false",
		`{"early_stopping": "always"}`:            "early_stopping is",
		`{"do_sample": true, "temperature": 0.0}`: "a number above 0",
		`{"do_sample": true, "min_p": 2}`:         "a number from 0 to 1",
		`{"eos_token_id": [null, 5]}`:             "the number of a token, or a list of such numbers",
		`{"stop_strings": ["x", null]}`:           "a list of texts",
		`null`:                                    "generation_config.json: it is null, expected an object",
		`{"do_sample": true, "do_sample": false}`: `generation_config.json: an object has "do_sample" twice`,
		`{"Do_Sample": true}`:                     "Do_Sample is",
		`[]`:                                      "generation_config.json: json: cannot unmarshal",
	} {
		write(t, dir, "generation_config.json", file)
		_, err := base.Generation()
		require.ErrorContains(t, err, message, file)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "generation_config.json")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "generation_config.json"), 0o700))
	_, err = base.Generation()
	require.ErrorContains(t, err, "generation_config.json")
	of, err = opened(t, "testdata/gguf/llama.gguf").Generation()
	require.NoError(t, err)
	require.Empty(t, of.Sampling)

	of, err = opened(t, withTokenizer(t, "llama")).Generation()
	require.NoError(t, err)
	require.Equal(t, 60, of.Tokenizer.Size())
	broken := withTokenizer(t, "llama")
	write(t, broken, "tokenizer.json", "{}")
	_, err = opened(t, broken).Generation()
	require.ErrorContains(t, err, "pretrained: the generation of "+broken)
}
