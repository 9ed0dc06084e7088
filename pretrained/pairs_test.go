package pretrained_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// The loss and its gradients, without and with negatives, differ from those of sentence-transformers in float64 at most
// 10 times as much as its own in float32. An own step gets them by the method Outputs alone.
func TestContrastive(t *testing.T) {
	f := fixture{kind: "pairs"}
	var metadata map[string]string
	f.all, metadata = readFile(t, "testdata/pairs.safetensors")
	require.NoError(t, json.Unmarshal([]byte(metadata["errors"]), &f.errors))
	network := undropped(t).Embedder().Contrastive(20)
	rows := network.Rows()
	for _, kind := range []string{"pairs", "triples"} {
		const rate = 1 << 12 // exact, and above the weights
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights(), managed.WithOptimizer(optim.New(rate)))
		require.NoError(t, err)
		step := managed.TrainStep(func(b *managed.Builder) { network.Outputs(b.Scope().In("model"), b.Field) })
		batch := f.batch(t, "texts", "none")
		if kind == "pairs" {
			batch = without(batch, "negative_")
		}
		require.NoError(t, step.Build(t.Context(), state, inputsOf(t, batch)))
		before := values(t, state, own(rows)...)
		_, logs, err := step.Step(t.Context(), state, batch)
		require.NoError(t, err)
		loss, err := logs.Float("losses.contrastive")
		require.NoError(t, err)
		f.errors[kind+"/loss"] = max(f.errors[kind+"/loss"], loss*0x1p-24) // half a unit: one number's error may be small by chance
		off := f.near(t, kind+"/loss", []float64{loss}, f.all[kind+"/loss"])
		after, grads := values(t, state, own(rows)...), f.under(kind+"/grad/")
		for _, row := range rows {
			got := make([]float64, len(before[row.Own]))
			for i, x := range before[row.Own] {
				got[i] = (float64(x) - float64(after[row.Own][i])) / rate
			}
			if row.Transposed {
				v, err := state.Value("/model/" + row.Own)
				require.NoError(t, err)
				got = transposed(got, v.Shape().Dimensions)
			}
			require.Contains(t, grads, row.Name)
			off = max(off, f.near(t, kind+"/grad/"+row.Name, got, grads[row.Name]))
			delete(grads, row.Name)
		}
		require.Empty(t, grads)
		t.Logf("%s: the largest difference over torch's error: %.2f", kind, off)
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
}

// undropped is a model without dropout, which would draw other numbers for other sizes.
func undropped(t *testing.T) *pretrained.Base {
	t.Helper()
	dir := folderWith(t, map[string]any{"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0})
	words, err := os.ReadFile("testdata/tokenizer.json")
	require.NoError(t, err)
	write(t, dir, "tokenizer.json", string(words))
	return opened(t, dir)
}

// without leaves out fields of a prefix.
func without(b data.Batch, prefix string) data.Batch {
	b.Fields = slices.DeleteFunc(slices.Clone(b.Fields), func(f data.Field) bool { return strings.HasPrefix(f.Name, prefix) })
	return b
}

func inputsOf(t *testing.T, b data.Batch) []strategies.Input {
	t.Helper()
	inputs, err := strategies.Inputs(b)
	require.NoError(t, err)
	return inputs
}

// translated are texts of the words w10 to w33 and their translations, the words 24 later in the opposite order.
func translated(n int, seed uint64) (texts, translations []string) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		var text, other []string
		for range 2 + rng.IntN(3) {
			word := 10 + rng.IntN(24)
			text, other = append(text, fmt.Sprintf("w%d", word)), append([]string{fmt.Sprintf("w%d", word+24)}, other...)
		}
		texts, translations = append(texts, strings.Join(text, " ")), append(translations, strings.Join(other, " "))
	}
	return texts, translations
}

// pairs has translated texts, and with negatives the previous text's translation.
func pairs(t *testing.T, base *pretrained.Base, n int, negatives bool) *data.Set {
	t.Helper()
	texts, translations := translated(n, 3)
	var wrong []text.Input
	if negatives {
		wrong = text.Inputs(append(translations[n-1:], translations[:n-1]...), 0)
	}
	set, err := base.Pairs(text.Inputs(texts, 0), text.Inputs(translations, 0), wrong)
	require.NoError(t, err)
	return set
}

func contrastive(t *testing.T, network *pretrained.Network, options ...flaxlike.Option) *flaxlike.Model {
	t.Helper()
	m, err := flaxlike.New(t.Context(), network, append([]flaxlike.Option{flaxlike.WithInnerLosses(), flaxlike.WithBatchSize(8),
		flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithOptimizer(optim.New(0.1))}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// found is the share of texts whose translation has the nearest embedding.
func found(t *testing.T, m *flaxlike.Model, base *pretrained.Base, n int) float64 {
	t.Helper()
	var embedded [2][]float32
	texts, translations := translated(n, 4)
	for i, of := range [][]string{texts, translations} {
		set, err := base.Set(text.Inputs(of, 0))
		require.NoError(t, err)
		predicted, err := m.Predict(t.Context(), set)
		require.NoError(t, err)
		out, err := predicted.Output()
		require.NoError(t, err)
		embedded[i] = out.Flat.([]float32)
	}
	cosine := func(i, j int) float64 {
		dot, a, b := 0.0, 0.0, 0.0
		for k := range 16 {
			x, y := float64(embedded[0][i*16+k]), float64(embedded[1][j*16+k])
			dot, a, b = dot+x*y, a+x*x, b+y*y
		}
		return dot / math.Sqrt(a*b)
	}
	right := 0
	for i := range n {
		best := 0
		for j := range n {
			if cosine(i, j) > cosine(i, best) {
				best = j
			}
		}
		if translations[best] == translations[i] {
			right++
		}
	}
	return float64(right) / float64(n)
}

// An embedder learns to find the translations of new texts. The saved folder has the same embeddings.
func TestContrastive_learns(t *testing.T) {
	base := undropped(t)
	network := base.Embedder().Contrastive(20)
	m := contrastive(t, network, flaxlike.WithBatchSize(32), flaxlike.WithOptimizer(optim.New(0.004, optim.Adam{})))
	before := found(t, m, base, 64)
	require.Less(t, before, 0.15)
	history, err := m.Fit(t.Context(), pairs(t, base, 400, false), flaxlike.Fit{Epochs: 40, Output: io.Discard, Validation: pairs(t, base, 40, false)})
	require.NoError(t, err)
	_, losses, err := history.Series("val_contrastive")
	require.NoError(t, err)
	after := found(t, m, base, 64)
	t.Logf("found %.2f, then %.2f; losses %.2f to %.2f", before, after, losses[0], losses[len(losses)-1])
	require.Greater(t, after, 0.9)
	saved := t.TempDir()
	require.NoError(t, network.Save(saved, m))
	again := opened(t, saved)
	require.Equal(t, after, found(t, contrastive(t, again.Embedder(), flaxlike.WithStrategy(host(t))), again, 64))
}

// Additions are trained by both texts of a pair, in either order of the methods.
func TestContrastive_lora(t *testing.T) {
	base := undropped(t)
	l := pretrained.LoRA{Targets: []string{"all-linear"}}
	batch := first(t, pairs(t, base, 8, false))
	var got []map[string][]float32
	for _, network := range []*pretrained.Network{base.Embedder().LoRA(l).Contrastive(20), base.Embedder().Contrastive(20).LoRA(l)} {
		m := contrastive(t, network, flaxlike.WithStrategy(host(t)), flaxlike.WithOptimizer(optim.New(0.01, optim.Adam{})))
		require.NoError(t, m.Init(t.Context(), batch))
		frozen := values(t, m, own(network.Rows())...)
		var losses []float64
		for range 30 {
			_, logs, err := m.TrainStep(t.Context(), batch)
			require.NoError(t, err)
			loss, err := logs.Float("losses.contrastive")
			require.NoError(t, err)
			losses = append(losses, loss)
		}
		require.Less(t, losses[29], losses[0]/2)
		require.Equal(t, frozen, values(t, m, own(network.Rows())...))
		got = append(got, values(t, m, own(network.AdapterRows())...))
	}
	require.Equal(t, got[0], got[1])
}

// Padding examples are no examples and no negatives: a padded batch trains as the one without padding, also over two
// devices.
func TestContrastive_padding(t *testing.T) {
	base := undropped(t)
	network := base.Embedder().Contrastive(20)
	near := func(want, got map[string][]float32) {
		for name, x := range want {
			require.InDeltaSlice(t, x, got[name], 1e-5, name)
		}
	}
	for _, negatives := range []bool{false, true} {
		batch := first(t, pairs(t, base, 5, negatives))
		padded, err := data.Pad(batch, 8)
		require.NoError(t, err)
		alone := contrastive(t, network, flaxlike.WithStrategy(host(t)))
		var losses []float64
		for _, b := range []data.Batch{batch, padded} {
			_, logs, err := alone.TestStep(t.Context(), b)
			require.NoError(t, err)
			loss, err := logs.Float("losses.contrastive")
			require.NoError(t, err)
			losses = append(losses, loss)
		}
		require.InDelta(t, losses[0], losses[1], 1e-5)
		want := trained(t, alone, network, batch)
		near(want, trained(t, contrastive(t, network, flaxlike.WithStrategy(host(t))), network, padded))
		if negatives {
			two, err := strategies.DataParallel(plugintest.Devices(t, 2), strategies.Parallel{Pad: true})
			require.NoError(t, err)
			near(want, trained(t, contrastive(t, network, flaxlike.WithStrategy(two)), network, batch))
		}
	}
}

// trained returns the weights after a step.
func trained(t *testing.T, m *flaxlike.Model, network *pretrained.Network, batch data.Batch) map[string][]float32 {
	t.Helper()
	_, _, err := m.TrainStep(t.Context(), batch)
	require.NoError(t, err)
	return values(t, m, own(network.Rows())...)
}

// The negatives of a batch over two ranks are those of the whole batch.
func TestContrastive_ranks(t *testing.T) {
	if !ranks.Over(t, 2) {
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	parallel, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), strategies.Parallel{})
	require.NoError(t, err)
	base := undropped(t)
	network := base.Embedder().Contrastive(20)
	batch := first(t, pairs(t, base, 8, true))
	got := trained(t, contrastive(t, network, flaxlike.WithStrategy(parallel)), network, batch)
	for name, want := range trained(t, contrastive(t, network, flaxlike.WithStrategy(host(t))), network, batch) {
		require.InDeltaSlice(t, want, got[name], 1e-5, name)
	}
	fmt.Fprintln(os.Stderr, "a step as on one device")
	require.NoError(t, job.Close())
}

// Mistakes are errors: texts without a partner, other networks, no scale, and batches that could teach nothing.
func TestContrastive_errors(t *testing.T) {
	dir := withTokenizer(t, "bert")
	base := opened(t, dir)
	two, one := text.Inputs([]string{"w1", "w2"}, 0), text.Inputs([]string{"w1"}, 0)
	for want, of := range map[string][3][]text.Input{
		"positives: there are 1, expected one for each of 2 anchors": {two, one},
		"positives: there are no texts":                              {two, nil},
		"negatives: there are 1, expected one for each of 2 anchors": {two, two, one},
		"negatives: text 1 has no tokens":                            {two, two, text.Inputs([]string{"w1", ""}, 0)},
	} {
		_, err := base.Pairs(of[0], of[1], of[2])
		require.EqualError(t, err, "pretrained: pairs of texts for "+dir+": "+want)
	}
	for want, network := range map[string]*pretrained.Network{
		"Contrastive: expected a network of Embedder":                              base.Hidden().Contrastive(20),
		"the network ForMaskedLM":                                                  base.MaskedLM().Contrastive(20),
		"Contrastive: the scale is 0, expected a number above 0, such as 20":       base.Embedder().Contrastive(0),
		"Contrastive: the scale is NaN, expected a number above 0":                 base.Embedder().Contrastive(math.NaN()),
		"pretrained: the network Model of testdata/resnet: it is a network of ima": opened(t, "testdata/resnet").Embedder().Contrastive(20),
	} {
		_, err := managed.New(host(t), network.Weights())
		require.ErrorContains(t, err, want)
	}
	set := pairs(t, base, 8, true)
	m := contrastive(t, base.Embedder().Contrastive(20), flaxlike.WithStrategy(host(t)))
	_, _, err := m.TrainStep(t.Context(), without(without(first(t, set), "negative_"), "positive_"))
	require.ErrorContains(t, err, `the batch has no field "positive_input_ids"`)
	alone, err := set.Slice(0, 1)
	require.NoError(t, err)
	_, logs, err := m.TrainStep(t.Context(), without(first(t, alone), "negative_"))
	require.NoError(t, err)
	loss, err := logs.Float("losses.contrastive")
	require.NoError(t, err)
	require.Zero(t, loss, "an anchor without negatives, as the last batch of a set may have")
	weighed := contrastive(t, base.Embedder().Contrastive(20), flaxlike.WithStrategy(host(t)), flaxlike.WithSampleWeights("w"))
	_, _, err = weighed.TrainStep(t.Context(), first(t, set))
	require.ErrorContains(t, err, "WithSampleWeights and WithClassWeights weigh the losses given by WithLoss")
	_, _, err = m.TrainStep(t.Context(), first(t, alone))
	require.NoError(t, err)
}
