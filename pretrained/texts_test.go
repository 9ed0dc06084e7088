package pretrained_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// withTokenizer returns a folder with a model of testdata, and the tokenizer of the words w0 to w59, whose token for
// padding is the word w7.
func withTokenizer(t *testing.T, kind string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", kind))))
	words, err := os.ReadFile("testdata/tokenizer.json")
	require.NoError(t, err)
	write(t, dir, "tokenizer.json", string(words))
	write(t, dir, "tokenizer_config.json", `{"pad_token": "w7"}`)
	return dir
}

// Texts become the inputs that the network takes: padded at the end to the longest, with types for networks that have
// them.
func TestBase_set(t *testing.T) {
	for kind, types := range map[string]bool{"bert": true, "distilbert": false, "llama": false} {
		base, err := pretrained.Open(t.Context(), withTokenizer(t, kind))
		require.NoError(t, err)
		set, err := base.Set(text.Inputs([]string{"w2 w3 w4", "w5"}, 2), data.Y([]int32{1, 0}, 2))
		require.NoError(t, err)
		var names []string
		for b, err := range set.Batches(2).All() {
			require.NoError(t, err)
			for _, f := range b.Fields {
				names = append(names, f.Name)
			}
			require.Equal(t, data.Array{Flat: []int32{2, 3, 5, 7}, Dims: []int{2, 2}}, b.Fields[0].Array)
			require.Equal(t, data.Array{Flat: []bool{true, true, true, false}, Dims: []int{2, 2}}, b.Fields[1].Array)
		}
		if types {
			require.Equal(t, []string{"input_ids", "attention_mask", "token_type_ids", "y"}, names)
		} else {
			require.Equal(t, []string{"input_ids", "attention_mask", "y"}, names)
		}
	}
}

// tokenizer_config.json says which end of a text is removed.
func TestBase_setTruncated(t *testing.T) {
	dir := withTokenizer(t, "distilbert")
	for side, want := range map[string][]int32{"right": {2, 3}, "left": {4, 5}} {
		write(t, dir, "tokenizer_config.json", `{"pad_token": "w7", "truncation_side": "`+side+`"}`)
		set, err := opened(t, dir).Set(text.Inputs([]string{"w2 w3 w4 w5"}, 2))
		require.NoError(t, err)
		for b, err := range set.Batches(1).All() {
			require.NoError(t, err)
			require.Equal(t, want, b.Fields[0].Array.Flat)
		}
	}
	write(t, dir, "tokenizer_config.json", `{"truncation_side": "middle"}`)
	_, err := opened(t, dir).Set(text.Inputs([]string{"w2"}, 2))
	require.ErrorContains(t, err, `truncation_side is "middle", expected left or right`)
}

// The second text of a pair has its own type, if the tokenizer has types as in transformers: by model_input_names, or
// by its class.
func TestBase_setOfPairs(t *testing.T) {
	dir := withTokenizer(t, "bert")
	words, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	require.NoError(t, err)
	write(t, dir, "tokenizer.json", strings.Replace(string(words), `"post_processor": null`, `"post_processor": {"type": "TemplateProcessing",
		"single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {}}`, 1))
	typed, zeros := []int32{0, 0, 1, 0, 1, 0}, make([]int32, 6)
	for settings, want := range map[string][]int32{
		``:                                     typed,
		`, "tokenizer_class": "BertTokenizer"`: typed,
		`, "tokenizer_class": "PreTrainedTokenizerFast"`:                                                       zeros,
		`, "model_input_names": ["input_ids", "attention_mask"], "tokenizer_class": "BertTokenizer"`:           zeros,
		`, "model_input_names": ["input_ids", "token_type_ids"], "tokenizer_class": "PreTrainedTokenizerFast"`: typed,
	} {
		write(t, dir, "tokenizer_config.json", `{"pad_token": "w7"`+settings+`}`)
		base, err := pretrained.Open(t.Context(), dir)
		require.NoError(t, err)
		set, err := base.Set([]text.Input{{Text: "w2 w3", Pair: new("w4")}, {Text: "w5", Pair: new("w6")}})
		require.NoError(t, err)
		for b, err := range set.Batches(2).All() {
			require.NoError(t, err)
			require.Equal(t, want, b.Fields[2].Array.Flat, settings)
		}
	}
}

// What no network of the folder could take is an error with the text's number.
func TestBase_setErrors(t *testing.T) {
	dir := withTokenizer(t, "bert")
	base, err := pretrained.Open(t.Context(), dir)
	require.NoError(t, err)
	_, err = base.Set(nil)
	require.EqualError(t, err, "pretrained: texts for "+dir+": there are no texts")
	_, err = base.Set(text.Inputs([]string{"w1", ""}, 0))
	require.ErrorContains(t, err, "text 1 has no tokens")
	_, err = base.Set(text.Inputs([]string{"w1"}, 0), data.Y([]int32{1, 2}, 2))
	require.Error(t, err)

	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	words, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	require.NoError(t, err)
	write(t, dir, "tokenizer.json", strings.Replace(string(words), `"w59": 59`, `"w59": 59, "w60": 60`, 1))
	require.Contains(t, string(config), `"vocab_size": 60`)
	base, err = pretrained.Open(t.Context(), dir)
	require.NoError(t, err)
	_, err = base.Set(text.Inputs([]string{"w1", "w1 w60"}, 0))
	require.ErrorContains(t, err, `text 1 has the token "w60" of id 60, the model's have ids below 60: is the tokenizer of another model?`)

	write(t, dir, "tokenizer_config.json", `{"pad_token": "w60"}`)
	base, err = pretrained.Open(t.Context(), dir)
	require.NoError(t, err)
	_, err = base.Set(text.Inputs([]string{"w1", "w1 w2"}, 0))
	require.ErrorContains(t, err, "the tokenizer's token for padding has the id 60, the model's have ids below 60")

	base, err = pretrained.Open(t.Context(), "testdata/bert")
	require.NoError(t, err)
	_, err = base.Tokenizer()
	require.ErrorContains(t, err, "pretrained: the tokenizer of testdata/bert: text: testdata/bert has no tokenizer.json")
}

// A trimmed batch has the same texts in fewer places, and what it could not trim is an error.
func TestTrim(t *testing.T) {
	ids := []int32{1, 2, 0, 0, 0, 0, 3, 4, 5, 0, 0, 0}
	mask := make([]bool, len(ids))
	for i, id := range ids {
		mask[i] = id > 0
	}
	batch := data.Batch{Size: 2, Fields: []data.Field{data.Named("attention_mask", mask, 2, 6), data.Named("input_ids", ids, 2, 6), data.Y([]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 2, 6),
		data.Named("other", []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 2, 6)}}
	for multiple, kept := range map[int]int{1: 3, 2: 4, 4: 4, 5: 5, 8: 6} {
		got, err := pretrained.Trim(multiple, "y")(batch)
		require.NoError(t, err)
		for i := range 3 {
			require.Equal(t, []int{2, kept}, got.Fields[i].Array.Dims)
		}
		require.Equal(t, []int{2, 6}, got.Fields[3].Array.Dims, "fields that are not named stay")
		labels := got.Fields[2].Array.Flat.([]int32)
		require.Equal(t, []int32{0, 1, 2}, labels[:3])
		require.Equal(t, []int32{6, 7, 8}, labels[kept:kept+3])
		require.Equal(t, []int{2, 6}, batch.Fields[1].Array.Dims, "the batch itself stays")
	}
	for want, f := range map[string]func(data.Batch) (data.Batch, error){
		"pretrained: trim: a multiple of 0 places":        pretrained.Trim(0),
		"trim: a multiple of 9223372036854775807 places":  pretrained.Trim(math.MaxInt),
		`the batch has no field "z"`:                      pretrained.Trim(1, "z"),
		`the field "short" is int32 [2], expected [texts`: pretrained.Trim(1, "short"),
	} {
		short := batch
		short.Fields = append(short.Fields[:4:4], data.Named("short", []int32{1, 2}, 2))
		_, err := f(short)
		require.ErrorContains(t, err, want)
	}
	_, err := pretrained.Trim(1)(data.Batch{Size: 1, Fields: []data.Field{data.Named("attention_mask", []int32{1}, 1, 1)}})
	require.ErrorContains(t, err, `the field "attention_mask" is int32 [1 1], expected bool [texts, places] of Base.Set`)
	_, err = pretrained.Trim(1)(data.Batch{})
	require.ErrorContains(t, err, `the batch has no field "attention_mask"`)
}

// Above 8 times the given places, the multiples double.
func TestTrim_longTexts(t *testing.T) {
	for seen, kept := range map[int]int{1: 4, 31: 32, 33: 40, 64: 64, 65: 80, 129: 160, 199: 200} {
		mask := make([]bool, 200)
		mask[seen-1] = true
		got, err := pretrained.Trim(4)(data.Batch{Size: 1, Fields: []data.Field{data.Named("attention_mask", mask, 1, 200), data.Named("input_ids", make([]int32, 200), 1, 200)}})
		require.NoError(t, err)
		require.Equal(t, []int{1, kept}, got.Fields[1].Array.Dims)
	}
}

// tracing lists the places of compiled batches.
type tracing struct {
	*pretrained.Network
	places []int
}

func (n *tracing) Outputs(s *model.Scope, field func(string) *graph.Node) map[string]*graph.Node {
	n.places = append(n.places, field("input_ids").Shape().Dimensions[1])
	return n.Network.Outputs(s, field)
}

// Texts of similar lengths are answered together, in fewer places, and the answers are in the texts' order.
func TestPredict(t *testing.T) {
	base := opened(t, withTokenizer(t, "bert"))
	var texts []string
	for i := range 12 { // of 1, 20, 2, 19, …
		n := 1 + i/2
		if i%2 == 1 {
			n = 20 - i/2
		}
		texts = append(texts, strings.TrimSpace(strings.Repeat("w"+strconv.Itoa(8+i)+" ", n)))
	}
	set, err := base.Set(text.Inputs(texts, 0))
	require.NoError(t, err)
	traced := &tracing{Network: base.Classifier(0)}
	m, err := flaxlike.New(t.Context(), traced, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithBatchSize(4), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	logits := func(p flaxlike.Prediction, err error) []float32 {
		require.NoError(t, err)
		a, err := p.Output()
		require.NoError(t, err)
		return a.Flat.([]float32)
	}
	got := logits(pretrained.Predict(t.Context(), m, set))
	require.Equal(t, []int{8, 16, 20}, slices.Compact(traced.places))
	require.InDeltaSlice(t, logits(m.Predict(t.Context(), set)), got, 1e-5)
	some := []bool{true, false, true, true, false, true, true, true, true, true, true, false}
	part, err := base.Set(text.Inputs(texts, 0), data.Named(data.Mask, some, 12))
	require.NoError(t, err)
	require.InDeltaSlice(t, logits(m.Predict(t.Context(), part)), logits(pretrained.Predict(t.Context(), m, part)), 1e-5)

	_, err = pretrained.Predict(t.Context(), m, nil)
	require.ErrorContains(t, err, "pretrained: predict: the set has no texts")
	other, err := data.New(data.X([]float32{1}, 1))
	require.NoError(t, err)
	_, err = pretrained.Predict(t.Context(), m, other)
	require.ErrorContains(t, err, "attention_mask")
	each, err := flaxlike.New(t.Context(), base.TokenClassifier(2), flaxlike.WithBatchSize(4), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
	require.NoError(t, err)
	defer func() { require.NoError(t, each.Close()) }()
	_, err = pretrained.Predict(t.Context(), each, set)
	require.ErrorContains(t, err, "an example's output is [8 2] in one batch and [16 2] in another")
}

// Each text of a pair is trimmed to an own length.
func TestTrim_pairs(t *testing.T) {
	base := opened(t, withTokenizer(t, "bert"))
	texts := func(long string) []text.Input { return text.Inputs([]string{"w1", "w1 w2", long}, 0) }
	set, err := base.Pairs(texts("w1 w2 w3 w4"), texts("w1 w2 w3 w4 w5"), texts("w1 w2 w3 w4 w5 w6"), data.Y([]int32{1, 2, 3}, 3))
	require.NoError(t, err)
	two, err := set.Slice(0, 2)
	require.NoError(t, err)
	for negatives, want := range map[bool][]int{true: {2, 2, 2, 2, 2, 2, 2, 2, 2}, false: {2, 2, 2, 2, 2, 2}} {
		batch := first(t, two)
		if !negatives {
			batch = without(batch, "negative_")
		}
		got, err := pretrained.Trim(1)(batch)
		require.NoError(t, err)
		var places []int
		for _, f := range got.Fields {
			if f.Name != "y" {
				places = append(places, f.Array.Dims[1])
			}
		}
		require.Equal(t, want, places)
	}
	whole, err := pretrained.Trim(4)(first(t, set))
	require.NoError(t, err)
	require.Equal(t, []int{3, 4}, whole.Fields[0].Array.Dims)
	require.Equal(t, []int{3, 5}, whole.Fields[3].Array.Dims)
	require.Equal(t, []int{3, 6}, whole.Fields[6].Array.Dims)
	ids, err := whole.Field("positive_input_ids")
	require.NoError(t, err)
	require.Equal(t, []int32{1, 7, 7, 7, 7, 1, 2, 7, 7, 7, 1, 2, 3, 4, 5}, ids.Flat)
}

// A file .gguf has its tokenizer within: its tokens, roles, and whether texts begin with a token.
func TestGGUF_tokenizer(t *testing.T) {
	number := func(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
	short := func(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
	str := func(s string) string { return number(uint64(len(s))) + s }
	of := func(key string) string { return str("tokenizer.ggml." + key) }
	list := func(key string, all ...string) string {
		s := of(key) + short(9) + short(8) + number(uint64(len(all)))
		for _, item := range all {
			s += str(item)
		}
		return s
	}
	types := of("token_type") + short(9) + short(5) + number(5) + short(3) + short(1) + short(1) + short(1) + short(1)
	values := []string{of("model") + short(8) + str("gpt2"), list("tokens", "<s>", "a", "b", "ab", "c"), list("merges", "a b"), types,
		of("bos_token_id") + short(4) + short(0), of("eos_token_id") + short(4) + short(0), str("tokenizer.chat_template") + short(8) + str("{{ 1 }}")}
	path := filepath.Join(t.TempDir(), "x.gguf")
	open := func(more ...string) (*text.Tokenizer, error) {
		all := append(more, values...)
		write(t, filepath.Dir(path), "x.gguf", "GGUF"+short(3)+number(0)+number(uint64(len(all)))+strings.Join(all, ""))
		return pretrained.GGUFTokenizer(path)
	}
	for _, row := range []struct {
		pre, bos string
		want     []int32
	}{
		{"gpt-2", "", []int32{3, 4}},
		{"gpt-2", of("add_bos_token") + short(7) + "\x01", []int32{0, 3, 4}},
		{"llama-bpe", "", []int32{0, 3, 4}},
		{"llama-bpe", of("add_bos_token") + short(7) + "\x00", []int32{3, 4}},
	} {
		more := []string{of("pre") + short(8) + str(row.pre)}
		if row.bos != "" {
			more = append(more, row.bos)
		}
		tokens, err := open(more...)
		require.NoError(t, err)
		got, err := tokens.Encode("abc")
		require.NoError(t, err)
		require.Equal(t, row.want, got, row)
		id, known := tokens.Special("eos")
		require.True(t, known)
		require.Zero(t, id)
		require.Equal(t, "{{ 1 }}", tokens.ChatTemplate())

		files, err := pretrained.TokenizerFiles(tokens) // of Save
		require.NoError(t, err)
		saved := t.TempDir()
		for name, content := range files {
			write(t, saved, name, string(content))
		}
		again, err := text.Open(saved)
		require.NoError(t, err)
		got, err = again.Encode("abc")
		require.NoError(t, err)
		require.Equal(t, row.want, got, row)
		_, known = again.Special("eos")
		require.True(t, known)
		require.Equal(t, "{{ 1 }}", again.ChatTemplate())
	}
	_, err := open(of("pre")+short(8)+str("gpt-2"), of("add_eos_token")+short(7)+"\x01")
	require.ErrorContains(t, err, "tokenizer.ggml.add_eos_token is true")
	_, err = open(of("pre") + short(8) + str("nope"))
	require.ErrorContains(t, err, `its pre-tokenizer "nope"`)
	_, err = open(of("pre")+short(8)+str("gpt-2"), of("add_bos_token")+short(0)+"\x01")
	require.ErrorContains(t, err, "tokenizer.ggml.add_bos_token is of the type uint64, expected bool")
	values = values[1:]
	_, err = open()
	require.ErrorContains(t, err, "has no tokenizer.ggml.model")
}
