package pretrained

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/lazo-ml/lazo/data/text"
)

// Generation configures [Generator.Generate].
type Generation struct {
	Sampling text.Sampling // likeliest token if zero
	// Seed is the first prompt's. Each further one has the next number, and draws as alone with this number.
	Seed      uint64
	Most      int     // tokens of each text; 0: all places
	Stop      []int32 // tokens that end a text
	Tokenizer *text.Tokenizer
	StopTexts []string // end a text before them
	Beams     Beams    // not with StopTexts or Sampling other than Repetition
}

func (of Generation) cloned() Generation {
	of.Stop, of.StopTexts = slices.Clone(of.Stop), slices.Clone(of.StopTexts)
	return of
}

func (of Generation) check() error {
	if of.Most < 0 {
		return fmt.Errorf("%d tokens as Most, expected at least 0", of.Most)
	}
	if drawn := of.Sampling != (text.Sampling{Repetition: of.Sampling.Repetition}); of.Beams.Count > 1 && (drawn || len(of.StopTexts) > 0) {
		return errors.New("a search with Beams has Sampling other than Repetition, or StopTexts, which is not implemented")
	}
	return errors.Join(of.Beams.check(), checkStops(of.StopTexts, of.Tokenizer))
}

const generationFile = "generation_config.json"

// Generation returns the folder's settings, those of generation_config.json, as transformers uses them: with
// do_sample Temperature 1 and TopK 50 unless the file has others, and without it none of them. Stop has eos_token_id,
// also of config.json if the folder has no such file. Tokenizer is the folder's, if it has one; one that
// Base.Tokenizer refuses is an error. max_length is not read: the generator's places bound a text. Other fields that
// would change texts are errors.
func (b *Base) Generation() (Generation, error) {
	of, err := b.generation()
	if err == nil {
		if of.Tokenizer, err = b.tokenizer(); errors.Is(err, fs.ErrNotExist) {
			of.Tokenizer, err = nil, nil
		}
	}
	if err != nil {
		return Generation{}, fmt.Errorf("pretrained: the generation of %s: %w", b.folder, err)
	}
	return of, nil
}

func (b *Base) generation() (of Generation, err error) {
	c, own := &config{file: b.file, fields: b.fields}, false
	if filepath.Ext(b.folder) != ggufExt {
		read, err := readConfig(b.folder, generationFile, mostText)
		if err == nil {
			own, c = true, read
		} else if !errors.Is(err, fs.ErrNotExist) {
			return of, err
		}
	}
	of.Stop = c.ids("eos_token_id")
	if !own {
		return of, c.err
	}
	for _, name := range slices.Sorted(maps.Keys(c.fields)) {
		values, known := generationFields[name]
		switch {
		case !known:
			c.fail(name, "a field that lazo knows: it may change texts; take it away, or do without Base.Generation")
		case values != nil:
			c.only(name, values...)
		}
	}
	share := func(x float64) bool { return x >= 0 && x <= 1 }
	if of.Sampling.Repetition = c.positive("repetition_penalty", 1); of.Sampling.Repetition == 1 {
		of.Sampling.Repetition = 0
	}
	if c.flag("do_sample", false) {
		of.Sampling.Temperature = c.positive("temperature", 1)
		if text := string(c.fields["top_k"]); text != "0" && text != "null" { // both: of all tokens
			of.Sampling.TopK = c.size("top_k", 50)
		}
		if of.Sampling.TopP = c.number("top_p", 1, share, "a number from 0 to 1"); of.Sampling.TopP == 0 {
			of.Sampling.TopP = math.SmallestNonzeroFloat64 // transformers keeps the likeliest token; 0 is all
		}
		of.Sampling.MinP = c.number("min_p", 0, share, "a number from 0 to 1")
	}
	if c.has("max_new_tokens") {
		of.Most = c.size("max_new_tokens", 0)
	}
	if of.StopTexts = nil; c.has("stop_strings") {
		var one string
		if c.decode("stop_strings", &one) == nil {
			of.StopTexts = []string{one}
		} else {
			of.StopTexts = c.texts("stop_strings")
		}
	}
	if n := c.size("num_beams", 1); n > 1 {
		of.Beams = Beams{Count: n, Early: early[string(c.fields["early_stopping"])]}
		of.Beams.LengthPenalty = c.number("length_penalty", 1, func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }, "a number")
	}
	return of, c.err
}

var early = map[string]string{"true": "first", `"never"`: "never"}

func (c *config) ids(name string) (ids []int32) {
	if !c.has(name) {
		return nil
	}
	var one int32
	err := c.decode(name, &one)
	if ids = []int32{one}; err != nil {
		ids = nil
		err = c.decode(name, &ids)
	}
	if err != nil || slices.ContainsFunc(ids, func(id int32) bool { return id < 0 }) {
		c.fail(name, "the number of a token, or a list of such numbers")
	}
	return ids
}

// generationFields are transformers', with the values that change nothing; nil: any value, for those read or without
// effect.
var generationFields = map[string][]string{
	"eos_token_id": nil, "do_sample": nil, "temperature": nil, "top_k": nil, "top_p": nil, "min_p": nil, "repetition_penalty": nil, "max_new_tokens": nil,
	"stop_strings": nil, "num_beams": nil, "length_penalty": nil, "early_stopping": {"false", "true", `"never"`},
	"max_length": nil, "bos_token_id": nil, "pad_token_id": nil, "decoder_start_token_id": nil, "use_cache": nil, "cache_implementation": nil, "cache_config": nil,
	"output_attentions": nil, "output_hidden_states": nil, "output_scores": nil, "output_logits": nil, "return_dict_in_generate": nil, "transformers_version": nil,
	"_from_model_config": nil, "compile_config": nil, "disable_compile": nil, "low_memory": nil, "prefill_chunk_size": nil, "continuous_batching_config": nil,
	"is_assistant": nil, "num_assistant_tokens": nil, "num_assistant_tokens_schedule": nil, "assistant_confidence_threshold": nil, "assistant_lookbehind": nil,
	"target_lookbehind": nil, "max_matching_ngram_size": nil, "_commit_hash": nil, "trust_remote_code": nil,
	"min_length": {"0"}, "min_new_tokens": {"0"}, "max_time": {}, "typical_p": {"1.0", "1"}, "top_h": {}, "epsilon_cutoff": {"0.0", "0"}, "eta_cutoff": {"0.0", "0"},
	"encoder_repetition_penalty": {"1.0", "1"}, "no_repeat_ngram_size": {"0"}, "encoder_no_repeat_ngram_size": {"0"}, "bad_words_ids": {}, "renormalize_logits": {"false"},
	"forced_bos_token_id": {}, "forced_eos_token_id": {}, "remove_invalid_values": {"false"}, "exponential_decay_length_penalty": {}, "suppress_tokens": {"[]"},
	"begin_suppress_tokens": {"[]"}, "sequence_bias": {}, "token_healing": {"false"}, "guidance_scale": {"1.0", "1"}, "watermarking_config": {}, "num_return_sequences": {"1"},
	"penalty_alpha": {"0.0", "0"}, "dola_layers": {}, "diversity_penalty": {"0.0", "0"}, "num_beam_groups": {"1"}, "constraints": {}, "force_words_ids": {},
	"prompt_lookup_num_tokens": {}, "assistant_early_exit": {}, "assistant_ensemble_weight": {}, "speculation_type": {}, "use_mtp": {"false"},
}
