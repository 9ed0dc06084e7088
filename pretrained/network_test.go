package pretrained_test

import (
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

func opened(t *testing.T, dir string) *pretrained.Base {
	t.Helper()
	base, err := pretrained.Open(t.Context(), dir)
	require.NoError(t, err)
	return base
}

// labelled is the long batch of a fixture with classes.
func labelled(t *testing.T, f fixture, places int) *data.Set {
	t.Helper()
	fields := f.batch(t, "long", "none").Fields
	labels := make([]int32, 3*max(1, places))
	for i := range labels {
		labels[i] = int32(i % 3)
	}
	dims := []int{3}
	if places > 0 {
		dims = []int{3, places}
	}
	set, err := data.New(append(fields, data.Y(labels, dims...))...)
	require.NoError(t, err)
	return set
}

// A new head is drawn and listed. Tensors of the head that the folder has for another task or number are not used.
func TestNetwork_newHead(t *testing.T) {
	f := fixtureOf(t, "bert")
	base := opened(t, "testdata/bert")
	network := base.Classifier(5)
	require.Equal(t, []string{"/model/classifier/kernel", "/model/classifier/bias"}, network.Drawn())
	require.Equal(t, []string{"classifier.bias", "classifier.weight"}, network.Unused())
	require.Equal(t, []string{"LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3", "LABEL_4"}, network.Labels)
	require.Len(t, outputsOf(t, network, f, "long")["logits"], 15)
	require.Equal(t, []string{"/model/classifier/kernel", "/model/classifier/bias"}, base.TokenClassifier(3).Drawn(), "of the same names, shapes and numbers, but for texts")
	require.Empty(t, base.Classifier(3).Drawn())
	require.Len(t, base.MaskedLM().Drawn(), 5)
	dir := f.folder(t, "Model")
	require.Len(t, opened(t, dir).Classifier(2).Drawn(), 2)
	for want, network := range map[string]*pretrained.Network{
		"pretrained: the network ForSequenceClassification of " + dir + ": 0 classes stand for the folder's, which has no such head: it is a model of the class [\"BertModel\"]: give the number of classes": opened(t, dir).Classifier(0),
		"-1 classes, expected 1 to 16777216, or 0":                 base.Classifier(-1),
		"config.json: tie_word_embeddings is false, expected true": opened(t, folderWith(t, map[string]any{"tie_word_embeddings": false})).MaskedLM(),
	} {
		_, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, network.Save(t.TempDir(), nil), want)
	}
	base.DType = dtypes.Float64
	_, err := flaxlike.New(t.Context(), base.Hidden(), flaxlike.WithStrategy(host(t)))
	require.ErrorContains(t, err, "the DType is Float64, expected Float32, Float16 or BFloat16")
}

// Weights are read in the dtype of the base, and saved in it. A number that a dtype lacks is an error.
func TestBase_dtype(t *testing.T) {
	f := fixtureOf(t, "bert")
	want := f.all["Model/long/last_hidden_state"]
	for d, limit := range map[dtypes.DType]float64{dtypes.BFloat16: 0.25, dtypes.Float16: 0.03} {
		base := opened(t, "testdata/bert")
		require.Equal(t, dtypes.Float32, base.DType)
		base.DType = d
		got := outputsOn(t, strategies.Jit(plugintest.CPU(t)), base.Hidden(), f, "long")["last_hidden_state"]
		require.InDeltaSlice(t, widened(want.floats(t)), got, limit)

		network := base.Hidden()
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights())
		require.NoError(t, err)
		step := managed.TestStep(func(b *managed.Builder) {
			b.Output("y", network.Outputs(b.Scope().In("model"), b.Field)["last_hidden_state"])
		})
		_, _, err = step.Step(t.Context(), state, f.batch(t, "long", "none"))
		require.NoError(t, err)
		dir := t.TempDir()
		require.NoError(t, network.Save(dir, state))
		again := opened(t, dir)
		require.Equal(t, d, again.DType)
		require.Equal(t, got, outputsOn(t, strategies.Jit(plugintest.CPU(t)), again.Hidden(), f, "long")["last_hidden_state"])
		again.DType = dtypes.Float32 // exact
		require.InDeltaSlice(t, widened(want.floats(t)), outputsOf(t, again.Hidden(), f, "long")["last_hidden_state"], limit)
		require.NoError(t, state.Close())
		require.NoError(t, step.Close())
	}
	all, _ := readFile(t, "testdata/bert/model.safetensors")
	const words = "bert.embeddings.word_embeddings.weight"
	all[words].data[3], all[words].data[2] = 0x7f, 0x00 // about 1e38
	dir := folderWith(t, nil)
	writeFile(t, filepath.Join(dir, "model.safetensors"), all)
	base := opened(t, dir)
	base.DType = dtypes.Float16
	m, err := flaxlike.New(t.Context(), base.Hidden(), flaxlike.WithStrategy(host(t)))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	require.ErrorContains(t, m.Init(t.Context(), f.batch(t, "long", "none")), `tensor "`+words+`": the number 1.7`)
}

// A network without its weights is an error, and so is one at another scope.
func TestNetwork_withoutWeights(t *testing.T) {
	f := fixtureOf(t, "bert")
	network := opened(t, "testdata/bert").Classifier(0)
	run := func(scope string, options ...managed.Option) error {
		state, err := managed.New(host(t), options...)
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		_, _, err = managed.TestStep(func(b *managed.Builder) {
			b.Output("y", network.Outputs(b.Scope().In("%s", scope), b.Field)["logits"])
		}).Step(t.Context(), state, f.batch(t, "long", "none"))
		return err
	}
	require.NoError(t, run("model", network.Weights()))
	require.ErrorContains(t, run("model"), "pretrained: the network has no weights: make the state with its Weights")
	require.ErrorContains(t, run("other", network.Weights()), "pretrained: the network has no weights")
}

// A custom head is trained with the rest, and padding does not count in the loss of places.
func TestBase_ownHead(t *testing.T) {
	f := fixtureOf(t, "roberta")
	base := opened(t, "testdata/roberta")
	network := base.Head(func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		return map[string]*graph.Node{"tags": nn.Dense{Units: 3}.Apply(s.In("tags"), hidden)}
	})
	for _, network := range []*pretrained.Network{network, base.TokenClassifier(3)} {
		m, err := flaxlike.New(t.Context(), network, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithStrategy(host(t)), flaxlike.WithBatchSize(3))
		require.NoError(t, err)
		set := labelled(t, f, 25)
		before, err := m.Evaluate(t.Context(), set)
		require.NoError(t, err)
		y, err := set.Field("y")
		require.NoError(t, err)
		other := slices.Clone(y.Flat.([]int32))
		other[25+24] = (other[25+24] + 1) % 3 // of padding
		changed, err := data.New(append(f.batch(t, "long", "none").Fields, data.Y(other, 3, 25))...)
		require.NoError(t, err)
		after, err := m.Evaluate(t.Context(), changed)
		require.NoError(t, err)
		require.Equal(t, before["loss"], after["loss"])
		_, err = m.Fit(t.Context(), set, flaxlike.Fit{Output: io.Discard})
		require.NoError(t, err)
		require.NoError(t, m.Close())
	}
}

// Inputs of another shape or with too many places are errors.
func TestNetwork_inputs(t *testing.T) {
	for _, kind := range []string{"bert", "mpnet"} {
		network := opened(t, filepath.Join("testdata", kind)).Hidden()
		m, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
		require.NoError(t, err)
		long := make([]int32, 29)
		batch := func(mask []int32, dims ...int) data.Batch {
			return data.Batch{Size: 1, Fields: []data.Field{data.Named("input_ids", long, 1, 29), data.Named("attention_mask", mask, dims...), data.Named("token_type_ids", long, 1, 29)}}
		}
		require.ErrorContains(t, m.Init(t.Context(), batch(long, 1, 29)), "places")
		ids := make([]int32, 4)
		require.ErrorContains(t, m.Init(t.Context(), data.Batch{Size: 1, Fields: []data.Field{data.Named("input_ids", ids, 1, 4)}}), "the batch has no field")
		require.ErrorContains(t, m.Init(t.Context(), data.Batch{Size: 1, Fields: []data.Field{data.Named("input_ids", ids, 1, 4), data.Named("attention_mask", ids[:1], 1),
			data.Named("token_type_ids", ids, 1, 4)}}), `the input "attention_mask" is (Int32)[1], expected whole numbers or bool of the shape of "input_ids", (Int32)[1, 4]`)
		require.NoError(t, m.Close())
	}
}

// Outputs of a bfloat16 base are float32, and so is a loss of them, which leaves masked places out.
func TestOutputs_ofBFloat16(t *testing.T) {
	base := opened(t, fixtureOf(t, "llama").folder(t, "ForCausalLM"))
	base.DType = dtypes.BFloat16
	m, err := flaxlike.New(t.Context(), base.CausalLM(), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithLoss("masked_sparse_categorical_crossentropy"))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	labels, mask := []int32{8, 9, 10, 7, 21, 7, 7, 7}, []int32{1, 1, 1, 0, 1, 1, 0, 0}
	set, err := data.New(data.Named("input_ids", []int32{7, 8, 9, 3, 20, 21, 3, 3}, 2, 4), data.Named("attention_mask", mask, 2, 4), data.Y(labels, 2, 4))
	require.NoError(t, err)
	predicted, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	logits, err := predicted.Output("logits")
	require.NoError(t, err)
	sum, counted := 0.0, 0.0
	for i, label := range labels {
		row, all := logits.Flat.([]float32)[i*60:][:60], 0.0
		for _, x := range row {
			all += math.Exp(float64(x))
		}
		sum += float64(mask[i]) * (math.Log(all) - float64(row[label]))
		counted += float64(mask[i])
	}
	logs, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, sum/counted, logs["loss"], 1e-5)
	half := bfloat16.FromFloat32(float32(logs["loss"])).Float32()
	require.NotEqual(t, half, float32(logs["loss"]), "a loss with the digits of float32")
}

// FreezeBase trains the head, and what the folder lacks of the network, alone.
func TestNetwork_freezeBase(t *testing.T) {
	for kind, want := range map[string][]string{"roberta": {"/model/classifier/bias", "/model/classifier/kernel", "/model/dense/bias", "/model/dense/kernel"}, "gpt2": {"/model/score/kernel"}} {
		network := opened(t, fixtureOf(t, kind).folder(t, "Model")).Classifier(4)
		m := fitted(t, network, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithOptimizer(optim.New(0.1, network.FreezeBase(), optim.Adam{})))
		ids, mask := []int32{5, 6, 7, 8, 9, 10}, []int32{1, 1, 1, 1, 1, 1}
		set, err := data.New(data.Named("input_ids", ids, 2, 3), data.Named("attention_mask", mask, 2, 3), data.Y([]int32{0, 1}, 2))
		require.NoError(t, err)
		require.NoError(t, m.Init(t.Context(), first(t, set)))
		before := map[string]string{}
		for _, name := range m.Names() {
			before[name] = must.M1(m.Value(name)).String()
		}
		_, err = m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 1, Output: io.Discard})
		require.NoError(t, err)
		var changed []string
		for name, value := range before {
			if strings.HasPrefix(name, "/model/") && must.M1(m.Value(name)).String() != value {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		require.Equal(t, want, changed)
	}
}

// A folder has a model or an adapter: transformers would add an adapter to a model in the same folder. A head of
// another number of classes leaves the kind of problem of the folder's out.
func TestSave_beside(t *testing.T) {
	network, f := adapted(t, "adapter-bert")
	network = network.LoadAdapter("testdata/adapter-bert")
	state := stateOf(t, network, f, "ForSequenceClassification")
	model, adapter := t.TempDir(), t.TempDir()
	require.NoError(t, network.Save(model, state))
	require.NoError(t, network.SaveAdapter(adapter, state))
	require.ErrorContains(t, network.Save(adapter, state), "it has adapter_config.json: transformers would add that adapter to this model: use another folder")
	require.ErrorContains(t, network.SaveAdapter(model, state), "it has config.json: transformers would add this adapter to the model there: use another folder")

	base := opened(t, folderWith(t, map[string]any{"problem_type": "multi_label_classification"}))
	for classes, want := range map[int]string{3: "multi_label_classification", 5: ""} {
		network, dir := base.Classifier(classes), t.TempDir()
		require.NoError(t, network.Save(dir, stateOf(t, network, fixtureOf(t, "bert"), "ForSequenceClassification")))
		require.Equal(t, want, opened(t, dir).Describe().Problem)
	}
}
