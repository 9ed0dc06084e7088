package pretrained_test

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// worded are texts of 1 to 12 words.
func worded(n int) (texts []string) {
	for i := range n {
		var words []string
		for j := range 1 + i*5%12 {
			words = append(words, fmt.Sprintf("w%d", 5+(i*7+j*11)%50))
		}
		texts = append(texts, strings.Join(words, " "))
	}
	return texts
}

// wordedBase is a model of a kind with a head for the next token, and a tokenizer.
func wordedBase(t *testing.T, kind string) *pretrained.Base {
	t.Helper()
	dir := fixtureOf(t, kind).folder(t, "ForCausalLM")
	words, err := os.ReadFile("testdata/tokenizer.json")
	require.NoError(t, err)
	write(t, dir, "tokenizer.json", string(words))
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	write(t, dir, "config.json", strings.ReplaceAll(string(config), `_pdrop": 0.1`, `_pdrop": 0`)) // of gpt2
	return opened(t, dir)
}

// logitsOf returns the logits of a set's places by the token and the place in its text.
func logitsOf(t *testing.T, network *pretrained.Network, set *data.Set) (all [][]float32) {
	t.Helper()
	state, err := managed.New(host(t), network.Weights())
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TestStep(func(b *managed.Builder) {
		b.Output("logits", network.Outputs(b.Scope().In("model"), b.Field)["logits"])
	})
	defer func() { require.NoError(t, step.Close()) }()
	_, logs, err := step.Step(t.Context(), state, first(t, set))
	require.NoError(t, err)
	got, err := managed.Array(logs, "logits")
	require.NoError(t, err)
	for i := range len(got.Flat.([]float32)) / 60 {
		all = append(all, got.Flat.([]float32)[i*60:][:60])
	}
	return all
}

// A text in a row with others has the logits that it has alone, for each architecture, also after more places than a
// window or a table of learned positions has.
func TestPacked(t *testing.T) {
	const places = 40
	texts := worded(14)
	for _, kind := range []string{"llama", "llama3", "mistral", "qwen2", "qwen3", "gpt2", "gemma2", "gemma3"} {
		base := wordedBase(t, kind)
		set, err := base.Packed(text.Inputs(texts, 0), places)
		require.NoError(t, err)
		require.Less(t, set.Len(), 4, "rows of 14 texts")
		packed := logitsOf(t, base.CausalLM(), set)
		alone, err := base.Set(text.Inputs(texts, 0))
		require.NoError(t, err)
		want := logitsOf(t, base.CausalLM(), alone)
		batch, padded := first(t, set), first(t, alone)
		ids, segments := batch.Fields[0].Array.Flat.([]int32), batch.Fields[1].Array.Flat.([]int32)
		single, longest := padded.Fields[0].Array.Flat.([]int32), padded.Fields[0].Array.Dims[1]
		tokens, worst := 0, 0.0
		for begin := 0; begin < len(ids); begin++ {
			if segments[begin] == 0 || begin%places > 0 && segments[begin] == segments[begin-1] {
				continue
			}
			end := begin
			for end < len(ids) && end/places == begin/places && segments[end] == segments[begin] {
				end++
			}
			row := -1 // of the same text alone
			for i := range texts {
				if n := len(strings.Fields(texts[i])); n == end-begin && fmt.Sprint(single[i*longest:][:n]) == fmt.Sprint(ids[begin:end]) {
					row = i
				}
			}
			require.GreaterOrEqual(t, row, 0)
			for i := begin; i < end; i++ {
				tokens++
				for k, x := range want[row*longest+i-begin] {
					worst = max(worst, math.Abs(float64(x-packed[i][k])))
				}
			}
		}
		require.Equal(t, len(strings.Fields(strings.Join(texts, " "))), tokens)
		require.Less(t, worst, 2e-5, kind)
		t.Logf("%s: %d tokens, the largest difference is %.2g", kind, tokens, worst)
	}
}

// Packed texts train as those in rows of their own: the same loss, weights and additions.
func TestPacked_trains(t *testing.T) {
	base := wordedBase(t, "gpt2")
	texts := worded(14)
	set, err := base.Packed(text.Inputs(texts, 0), 40)
	require.NoError(t, err)
	plain := base.CausalLM()
	alone, err := base.Set(text.Inputs(texts, 0))
	require.NoError(t, err)
	fields := first(t, alone).Fields
	ids, mask, labels := fields[0].Array.Flat.([]int32), fields[1].Array.Flat.([]bool), []int32(nil)
	for i := range ids {
		if longest := fields[0].Array.Dims[1]; mask[i] && i%longest < longest-1 && mask[i+1] {
			labels = append(labels, ids[i+1])
		} else {
			labels = append(labels, -100)
		}
	}
	alone, err = data.New(fields[0], fields[1], data.Y(labels, fields[0].Array.Dims...))
	require.NoError(t, err)
	adapted := plain.LoRA(pretrained.LoRA{Rank: 2, Targets: []string{"all-linear"}})
	for _, row := range []struct {
		network *pretrained.Network
		trained []pretrained.Row
		on      strategies.Strategy
	}{{plain, plain.Rows(), host(t)}, {adapted, adapted.AdapterRows(), strategies.Jit(plugintest.CPU(t))}} {
		var losses []float64
		var got []map[string][]float32
		for _, set := range []*data.Set{set, alone} {
			m := fitted(t, row.network, flaxlike.WithStrategy(row.on), flaxlike.WithBatchSize(set.Len()), flaxlike.WithOptimizer(optim.New(0.5)))
			require.NoError(t, m.Init(t.Context(), first(t, set)))
			if row.network == adapted { // drawn otherwise
				for _, of := range row.trained {
					v, err := m.Value("/model/" + of.Own)
					require.NoError(t, err)
					some := make([]float32, v.Size())
					for i := range some {
						some[i] = float32(i%5-2) / 4
					}
					require.NoError(t, m.SetValue("/model/"+of.Own, tensors.FromFlatDataAndDimensions(some, v.Shape().Dimensions...)))
				}
			}
			before := values(t, m, own(row.trained)...)
			_, err = m.Fit(t.Context(), set, flaxlike.Fit{Output: io.Discard})
			require.NoError(t, err)
			figures, err := m.Evaluate(t.Context(), set)
			require.NoError(t, err)
			losses, got = append(losses, figures["loss"]), append(got, values(t, m, own(row.trained)...))
			require.NotEqual(t, before, got[0])
		}
		require.InDelta(t, losses[0], losses[1], 1e-5)
		for name, x := range got[0] {
			require.InDeltaSlice(t, x, got[1][name], 1e-5, name)
		}
	}
}

// Networks with one answer for a row, encoders and pairs of texts refuse packed rows; so do texts without space.
func TestPacked_errors(t *testing.T) {
	base := wordedBase(t, "llama")
	set, err := base.Packed(text.Inputs(worded(4), 0), 20)
	require.NoError(t, err)
	batch := first(t, set)
	both := batch
	both.Fields = append(both.Fields[:3:3], data.Named("attention_mask", make([]bool, 20*batch.Size), batch.Size, 20))
	const refused = "the batch has the field segment_ids, several texts in a row, which are for CausalLM"
	for _, row := range []struct {
		network *pretrained.Network
		batch   data.Batch
		want    string
	}{
		{base.Classifier(3), batch, "pretrained: the network ForSequenceClassification: " + refused},
		{base.Embedder(), batch, refused},
		{base.Hidden(), batch, refused},
		{opened(t, "testdata/bert").Classifier(3), batch, refused},
		{opened(t, "testdata/bert").Embedder(), batch, refused},
		{opened(t, "testdata/t5").Seq2SeqLM(), batch, refused},
		{base.CausalLM(), both, "the batch has the fields attention_mask and segment_ids, expected one of them"},
	} {
		m := fitted(t, row.network, flaxlike.WithStrategy(host(t)))
		_, err := m.PredictBatch(t.Context(), row.batch)
		require.ErrorContains(t, err, row.want)
	}
	_, err = base.Packed(text.Inputs([]string{"w1", "w1 w2 w3"}, 0), 2)
	require.ErrorContains(t, err, "data: pack 2 sequences into rows of 2: sequence 1 has 3 items, expected 1 to 2")
	_, err = base.Packed(nil, 2)
	require.ErrorContains(t, err, "there are no texts")
	_, err = wordedBase(t, "gpt2").Packed(text.Inputs([]string{strings.Repeat("w1 ", 29)}, 0), 64)
	require.ErrorContains(t, err, "text 0 has 29 tokens, the model has positions for 28: expected a Most of the input")
}
