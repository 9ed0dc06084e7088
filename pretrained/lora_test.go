package pretrained_test

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// causal returns the network of a fixture with a head for the next token.
func causal(t *testing.T, kind string) *pretrained.Network {
	t.Helper()
	return opened(t, fixtureOf(t, kind).folder(t, "ForCausalLM")).CausalLM()
}

const ignoring = "masked_sparse_categorical_crossentropy"

// counting has texts that count up from 5 to 12 and begin again. Labels are the next tokens; -100 is ignored.
func counting(t *testing.T, examples, places int) *data.Set {
	t.Helper()
	var ids, mask, labels []int32
	for i := range examples {
		for at := range places {
			token := int32(5 + (i+at)%8)
			ids, mask = append(ids, token), append(mask, 1)
			if token = 5 + (token-4)%8; at == 0 {
				token = -100
			}
			labels = append(labels, token)
		}
	}
	set, err := data.New(data.Named("input_ids", ids, examples, places), data.Named("attention_mask", mask, examples, places), data.Y(labels, examples, places))
	require.NoError(t, err)
	return set
}

// values returns the numbers of variables of a model.
func values(t *testing.T, m interface {
	Value(name string) (*tensors.Tensor, error)
}, names ...string,
) map[string][]float32 {
	t.Helper()
	all := map[string][]float32{}
	for _, name := range names {
		v, err := m.Value("/model/" + name)
		require.NoError(t, err)
		all[name] = tensors.MustCopyFlatData[float32](v)
	}
	return all
}

func first(t *testing.T, set *data.Set) data.Batch {
	t.Helper()
	for batch, err := range set.Batches(set.Len()).From(0) {
		require.NoError(t, err)
		return batch
	}
	return data.Batch{}
}

func own(rows []pretrained.Row) (names []string) {
	for _, row := range rows {
		names = append(names, row.Own)
	}
	return names
}

func fitted(t *testing.T, network *pretrained.Network, options ...flaxlike.Option) *flaxlike.Model {
	t.Helper()
	m, err := flaxlike.New(t.Context(), network, append([]flaxlike.Option{flaxlike.WithLoss(ignoring), flaxlike.WithBatchSize(8),
		flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithOptimizer(optim.New(0.02, optim.Adam{}))}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// Additions learn a task of which the frozen network knows nothing. The first outputs are exactly the base's, and the
// base's weights stay bit-identical, without values of the optimizer. The merged folder has the same outputs.
func TestLoRA(t *testing.T) {
	base := causal(t, "llama")
	network := base.LoRA(pretrained.LoRA{Targets: []string{"all-linear"}, Alpha: 16, Dropout: 0.05})
	require.Equal(t, outputsOf(t, base, fixtureOf(t, "llama"), "long"), outputsOf(t, network, fixtureOf(t, "llama"), "long"))
	m, set := fitted(t, network), counting(t, 16, 9)
	require.NoError(t, m.Init(t.Context(), first(t, set)))
	frozen := own(network.Rows())
	before := values(t, m, frozen...)
	for name, x := range values(t, m, own(network.AdapterRows())...) {
		require.Equal(t, strings.HasSuffix(name, "lora_b/kernel"), slices.Max(x) == 0, name)
		if strings.HasSuffix(name, "down/lora_a/kernel") { // of 32 inputs
			require.InDelta(t, 1/5.657, slices.Max(x), 0.01)
		}
	}
	_, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 60, Output: io.Discard})
	require.NoError(t, err)
	require.Equal(t, before, values(t, m, frozen...))
	optimizers := 0
	for _, name := range m.Names() {
		if strings.HasSuffix(name, "_moment") {
			require.Contains(t, name, "/lora_")
			optimizers++
		}
	}
	require.Equal(t, 2*14*2, optimizers, "two moments of A and B of 14 layers")
	right := func(m *flaxlike.Model) {
		out, err := m.Predict(t.Context(), set)
		require.NoError(t, err)
		logits, err := out.Output()
		require.NoError(t, err)
		y, err := set.Field("y")
		require.NoError(t, err)
		hits := 0
		for i, label := range y.Flat.([]int32) {
			row := logits.Flat.([]float32)[i*60:][:60]
			if label >= 0 && row[label] == slices.Max(row) {
				hits++
			}
		}
		require.Equal(t, 16*8, hits)
	}
	right(m)
	dir := t.TempDir()
	require.NoError(t, network.Save(dir, m))
	right(fitted(t, opened(t, dir).CausalLM()))
	merged, _ := readFile(t, filepath.Join(dir, "model.safetensors"))
	require.Len(t, merged, len(network.Rows()))
}

// A training step computes no gradients of frozen weights.
func TestLoRA_programs(t *testing.T) {
	products := map[bool]int{}
	base := causal(t, "llama")
	for whole, network := range map[bool]*pretrained.Network{true: base, false: base.LoRA(pretrained.LoRA{Targets: []string{"q_proj", "v_proj"}})} {
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights(), managed.WithOptimizer(optim.New(0.1)))
		require.NoError(t, err)
		step := managed.TrainStep(func(b *managed.Builder) {
			b.Loss("loss", graph.ReduceAllMean(graph.Square(network.Outputs(b.Scope().In("model"), b.Field)["logits"])))
		})
		_, _, err = step.Step(t.Context(), state, first(t, counting(t, 2, 4)))
		require.NoError(t, err)
		products[whole] = strings.Count(step.StableHLO()[0], "dot_general")
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
	// All weights: each of 15 matrices and 4 products of attention has its product, and gradients of both factors.
	require.Equal(t, 3*(2*7+1+4), products[true])
	// Additions have 2 products with 2 gradients each, but for the first input. Frozen matrices have their product, and
	// a gradient of their input, but for the first layer's queries, keys and values. Its keys need no gradient.
	require.Equal(t, 2*(2*7+1)-3+3*4-1+4*2*3-2, products[false])
}

// A run that is interrupted and resumed ends bit-identical, with dropout.
func TestLoRA_resume(t *testing.T) {
	network := causal(t, "llama").LoRA(pretrained.LoRA{Targets: []string{"q_proj", "down_proj"}, Dropout: 0.2})
	set, dir := counting(t, 16, 5), t.TempDir()
	run := func(epochs int, options ...loop.Option) map[string][]float32 {
		m := fitted(t, network)
		_, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: epochs, Output: io.Discard, Callbacks: options})
		require.NoError(t, err)
		return values(t, m, own(network.AdapterRows())...)
	}
	want := run(4)
	require.NotEqual(t, want, run(2, checkpoint.Resume(dir, checkpoint.Every(loop.Epochs(1)))))
	require.Equal(t, want, run(4, checkpoint.Resume(dir, checkpoint.Every(loop.Epochs(1)))))
}

// Over two devices, a step changes the additions as on one.
func TestLoRA_devices(t *testing.T) {
	network := causal(t, "llama").LoRA(pretrained.LoRA{Targets: []string{"q_proj", "down_proj"}})
	two, err := strategies.DataParallel(plugintest.Devices(t, 2), strategies.Parallel{})
	require.NoError(t, err)
	var got []map[string][]float32
	for _, options := range [][]flaxlike.Option{nil, {flaxlike.WithStrategy(two)}} {
		m := fitted(t, network, append(options, flaxlike.WithOptimizer(optim.New(0.1)))...)
		_, err := m.Fit(t.Context(), counting(t, 16, 5), flaxlike.Fit{Output: io.Discard})
		require.NoError(t, err)
		got = append(got, values(t, m, own(network.AdapterRows())...))
	}
	for name, x := range got[0] {
		require.InDeltaSlice(t, x, got[1][name], 1e-6, name)
	}
}

// A base of bfloat16 has additions and a trained head of float32, and is saved in bfloat16.
func TestLoRA_bfloat16(t *testing.T) {
	f := fixtureOf(t, "bert")
	for task, module := range map[string]string{"ForSequenceClassification": "classifier", "ForMaskedLM": "transform.dense"} {
		base := opened(t, f.folder(t, task))
		base.DType = dtypes.BFloat16
		network := tasks[task](base).LoRA(pretrained.LoRA{Targets: []string{"query"}, Modules: []string{module}})
		m := fitted(t, network)
		batch := f.batch(t, "long", "none")
		labels := labelled(t, f, 25)
		if task == "ForSequenceClassification" {
			labels = labelled(t, f, 0)
		}
		require.NoError(t, m.Init(t.Context(), batch))
		_, err := m.Fit(t.Context(), labels, flaxlike.Fit{Output: io.Discard})
		require.NoError(t, err)
		for _, row := range network.AdapterRows() {
			v, err := m.Value("/model/" + row.Own)
			require.NoError(t, err)
			require.Equal(t, dtypes.Float32, v.DType(), row.Own)
		}
		v, err := m.Value("/model/layer_0/attention/query/kernel")
		require.NoError(t, err)
		require.Equal(t, dtypes.BFloat16, v.DType())
		prediction, err := m.PredictBatch(t.Context(), batch)
		require.NoError(t, err)
		logits, err := prediction.Output()
		require.NoError(t, err)
		require.IsType(t, []float32{}, logits.Flat, "for exact losses")
		dir := t.TempDir()
		require.NoError(t, network.Save(dir, m))
		require.Equal(t, dtypes.BFloat16, opened(t, dir).DType)
	}
}

// Options that select nothing, or that would change numbers, are errors.
func TestLoRA_errors(t *testing.T) {
	llama, bert := causal(t, "llama"), opened(t, "testdata/bert").Classifier(3)
	half := opened(t, "testdata/bert")
	half.DType = dtypes.BFloat16
	for want, network := range map[string]*pretrained.Network{
		`LoRA: the target "k" is not the end of a dense layer's name, expected one of ["down_proj" "gate_proj" "k_proj" "lm_head" "o_proj" "q_proj" "up_proj" "v_proj"]`: llama.LoRA(pretrained.LoRA{Targets: []string{"q_proj", "k"}}),
		`LoRA: the targets "null" match no dense layer, expected ends of ["down_proj"`:                                                                                   llama.LoRA(pretrained.LoRA{}),
		`the target "embed_tokens" is not the end of a dense layer's name`:                                                                                               llama.LoRA(pretrained.LoRA{Targets: []string{"embed_tokens"}}),
		`LoRA: r is "-1", expected a whole number from 1`:                                                                                                                llama.LoRA(pretrained.LoRA{Rank: -1, Targets: []string{"q_proj"}}),
		`LoRA: lora_alpha is "-1", expected a number above 0`:                                                                                                            llama.LoRA(pretrained.LoRA{Alpha: -1, Targets: []string{"q_proj"}}),
		`LoRA: lora_dropout is "1", expected a number from 0 to below 1`:                                                                                                 llama.LoRA(pretrained.LoRA{Dropout: 1, Targets: []string{"q_proj"}}),
		`the rank of "model.layers.0.self_attn.q_proj" is 1000000, expected at most 16: its weight is [16 16]`:                                                           llama.LoRA(pretrained.LoRA{Rank: 1_000_000, Targets: []string{"q_proj"}}),
		`LoRA: "clasifier" of Modules is not the end of a module's name, expected one of ["bert.embeddings.word_embeddings"`:                                             bert.LoRA(pretrained.LoRA{Targets: []string{"query"}, Modules: []string{"clasifier"}}),
		`the network has additions already`:                                                                                                                              llama.LoRA(pretrained.LoRA{Targets: []string{"q_proj"}}).LoRA(pretrained.LoRA{Targets: []string{"q_proj"}}),
		`the module "bert.encoder.layer.0.output.dense" is trained itself, and the network is of BFloat16`:                                                               half.Classifier(3).LoRA(pretrained.LoRA{Targets: []string{"query"}, Modules: []string{"0.output.dense"}}),
		`the module "model.embed_tokens" is trained itself, and it is also the output's`:                                                                                 causal(t, "llama3").LoRA(pretrained.LoRA{Targets: []string{"q_proj"}, Modules: []string{"embed_tokens"}}),
		`pretrained: the network ForMaskedLM of testdata/llama: the architecture has no such head`:                                                                       opened(t, "testdata/llama").MaskedLM().LoRA(pretrained.LoRA{Targets: []string{"q_proj"}}),
	} {
		_, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, network.SaveAdapter(t.TempDir(), nil), want)
	}
	require.ErrorContains(t, llama.SaveAdapter(t.TempDir(), nil), "the network has no additions: make it with Network.LoRA")
	m := fitted(t, llama.LoRA(pretrained.LoRA{Targets: []string{"q_proj"}}), flaxlike.WithPolicy(optim.MixedBFloat16()))
	_, _, err := m.TrainStep(t.Context(), first(t, counting(t, 2, 4)))
	require.ErrorContains(t, err, "pretrained: LoRA under a policy that computes in BFloat16, which is not implemented: set Base.DType to BFloat16, without a policy")
}
