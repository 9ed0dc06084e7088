package flaxlike_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

func opened(t testing.TB, path string, options ...flaxlike.Option) (*flaxlike.Model, error) {
	t.Helper()
	m, err := flaxlike.Open(t.Context(), path, append([]flaxlike.Option{flaxlike.WithStrategy(jit(t))}, options...)...)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, m.Close()) })
	}
	return m, err
}

// scaled is a layer of a program's own with settings.
type scaled struct {
	By    float64
	Units []int
}

func (s scaled) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return nn.Dense{Units: s.Units[0]}.Apply(scope, graph.MulScalar(x, s.By))
}

func fitted(t testing.TB) *flaxlike.Model {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.FixedZone("", 3600))
	return newModel(t, nn.Sequential{nn.Dense{Units: 4}, nn.Activation("relu"), nn.Dropout{Rate: 0.2}, nn.Dense{Units: 3}},
		flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Smoothing: 0.1}), flaxlike.WithMetrics("accuracy", "f1"), flaxlike.WithOptimizer("momentum"), flaxlike.WithLearningRate(0.03), flaxlike.WithBatchSize(16),
		flaxlike.WithClassWeights(map[int]float64{2: 1.5}), flaxlike.WithClasses([]string{"ant", "bee", "cat"}), flaxlike.WithPreparation(numbered(t, "y", "ant", "bee", "cat")),
		flaxlike.WithClock(func() time.Time { return at }))
}

// A program that has nothing but the file predicts and evaluates the same bits, knows classes, preparation and card,
// and trains further.
func TestOpen(t *testing.T) {
	set, path := tabled(t, 64, "ant", "bee", "cat"), filepath.Join(t.TempDir(), "model.safetensors")
	m := fitted(t)
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2}))
	require.NoError(t, err)
	evaluated, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	predicted, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.NoError(t, m.Save(path))

	again, err := opened(t, path)
	require.NoError(t, err)
	require.Equal(t, []string{"ant", "bee", "cat"}, must.M1(predicted.ClassNames()))
	require.Equal(t, m.Preparation(), again.Preparation())
	card := again.Describe().Card
	require.Equal(t, 64, card.Examples)
	require.Equal(t, []string{"x float32 [3]", "y int32 []"}, card.Fields)
	require.Equal(t, 2, card.Epochs)
	last, err := h.Last("loss")
	require.NoError(t, err)
	require.Equal(t, last, card.Fit["loss"])
	require.Equal(t, evaluated, card.Evaluated)
	require.Equal(t, "2026-05-04T02:02:01Z", card.Saved.Format(time.RFC3339))
	require.Contains(t, card.Versions["plugin"], "cpu")
	got, err := again.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, evaluated, got)
	h, err = again.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 3}))
	require.NoError(t, err)
	further := series(t, h, "loss")
	require.Less(t, further[2], last)
	rate, err := again.LearningRate()
	require.NoError(t, err)
	require.InDelta(t, 0.03, rate, 1e-8)

	out := command(t, path)
	require.Equal(t, must.M1(json.Marshal(output(t, predicted).Flat)), bytes.TrimSpace(out), "another process")
}

// command has another process predict what the model of a file says of sorted's examples.
func command(t testing.TB, path string) []byte {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestOpenChild$", "-test.v=false")
	cmd.Env = append(os.Environ(), childFile+"="+path)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, said.String())
	out, _, _ = bytes.Cut(out, []byte("\n"))
	return out
}

const childFile = "LAZO_FLAXLIKE_TEST_FILE"

// TestOpenChild is a process that has the file alone; run for itself it does nothing.
func TestOpenChild(t *testing.T) {
	path := os.Getenv(childFile)
	if path == "" {
		return
	}
	m, err := opened(t, path)
	require.NoError(t, err)
	out, err := m.Predict(t.Context(), tabled(t, 64, "ant", "bee", "cat"))
	require.NoError(t, err)
	fmt.Printf("%s\n", must.M1(json.Marshal(output(t, out).Flat)))
}

// Parts that a file cannot have are named where they are needed, and no sooner.
func TestOpen_code(t *testing.T) {
	set, dir := sorted(t, 64), t.TempDir()
	save := func(name string, n nn.Layer, options ...flaxlike.Option) string {
		m, path := newModel(t, n, options...), filepath.Join(dir, name)
		require.NoError(t, m.Init(t.Context(), first(t, set, 32)))
		require.NoError(t, m.Save(path))
		return path
	}
	by := 2.0
	closure := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.MulScalar(x, by) })
	network := nn.Sequential{nn.Dense{Units: 3}, nn.Named{Name: "twice", Layer: closure}}
	path := save("closure", network)
	_, err := opened(t, path)
	require.ErrorContains(t, err, `the layer "1/twice" is an anonymous function`)
	require.ErrorContains(t, err, "give Open WithNetwork")
	m, err := opened(t, path, flaxlike.WithNetwork(network))
	require.NoError(t, err)
	_, err = m.Predict(t.Context(), set)
	require.NoError(t, err)

	_, err = opened(t, save("hidden", nn.Sequential{hidden{by: 2}, nn.Dense{Units: 3}}))
	require.ErrorContains(t, err, `the layer "0", hidden, cannot be saved: its field by is not exported`)

	own := flaxlike.Loss{Name: "own", Func: func(labels, output *graph.Node) *graph.Node { return graph.ReduceMean(output, 1) }}
	ownMetric := flaxlike.Metric{Name: "mine", Func: own.Func}
	path = save("loss", nn.Dense{Units: 3}, flaxlike.WithLoss(own), flaxlike.WithMetrics(ownMetric), flaxlike.WithOptimizer(optim.New(0.1)))
	m, err = opened(t, path)
	require.NoError(t, err)
	_, err = m.Predict(t.Context(), set)
	require.NoError(t, err)
	_, err = m.Evaluate(t.Context(), set)
	require.ErrorContains(t, err, `the loss "own" is code, and the file does not have it: give Open WithLoss`)
	_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, `the loss "own" is code`)

	// A second file has the names of losses and metrics that are code too.
	was, err := flaxlike.Describe(path)
	require.NoError(t, err)
	require.Empty(t, was.Optimizer)
	again := filepath.Join(t.TempDir(), "again.safetensors")
	require.NoError(t, m.Save(again))
	for _, is := range []flaxlike.Description{m.Describe(), must.M1(flaxlike.Describe(again))} {
		require.Equal(t, was.Losses, is.Losses)
		require.Equal(t, was.Metrics, is.Metrics)
		require.Empty(t, is.Optimizer)
	}
	m, err = opened(t, again)
	require.NoError(t, err)
	_, err = m.Evaluate(t.Context(), set)
	require.ErrorContains(t, err, `the loss "own" is code`)
	require.ErrorContains(t, m.SetLearningRate(0.5), "the optimizer has no name, and the file does not have it")
	m, err = opened(t, again, flaxlike.WithLoss(own), flaxlike.WithMetrics(ownMetric))
	require.NoError(t, err)
	require.NoError(t, m.SetOptimizer(t.Context(), optim.New(0.1)))
	require.NoError(t, m.SetLearningRate(0.5))
	_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.NoError(t, err)

	m, err = opened(t, path, flaxlike.WithLoss(own), flaxlike.WithMetrics(ownMetric))
	require.NoError(t, err)
	_, err = m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, "the optimizer has no name, and the file does not have it: give Open WithOptimizer")

	_, err = opened(t, path, flaxlike.WithLayer("nothing", nn.Dense{Units: 3}))
	require.ErrorContains(t, err, `WithLayer "nothing": the file's network has no such custom layer`)
	_, err = flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithStrategy(jit(t)), flaxlike.WithNetwork(nn.Dense{Units: 1}))
	require.ErrorContains(t, err, "WithNetwork and WithLayer are only for Open")
	_, err = opened(t, "testdata/attention_gomlx_v0.26.safetensors")
	require.ErrorContains(t, err, "the file has values of variables, but no model")
	require.ErrorContains(t, newModel(t, nn.Dense{Units: 3}, flaxlike.WithClasses([]string{"a", "b"})).Init(t.Context(), first(t, set, 32)), "WithClasses names 2 classes, and the output (Float32)[32, 3] has 3")
	require.Empty(t, m.Describe().Preparation)
}

// A network with another number of classes than the file has names for is an error that says where the names come from.
func TestOpen_anotherNumberOfClasses(t *testing.T) {
	network := func(classes int) nn.Layer {
		return nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
			return graph.OneHot(graph.ConvertDType(nn.Dense{Units: 3}.Apply(scope, x), dtypes.Int32), classes, dtypes.Float32)
		})
	}
	m := newModel(t, network(2), flaxlike.WithClasses([]string{"a", "b"}))
	require.NoError(t, m.Init(t.Context(), first(t, sorted(t, 4), 4)))
	path := filepath.Join(t.TempDir(), "m.safetensors")
	require.NoError(t, m.Save(path))
	_, err := opened(t, path, flaxlike.WithNetwork(network(3)))
	require.ErrorContains(t, err, "the file has the names of 2 classes, and the output (Float32)[4, 3, 3] has 3\n  for a network with other classes give Open WithClasses")
	_, err = opened(t, path, flaxlike.WithNetwork(network(3)), flaxlike.WithClasses([]string{"a", "b", "c"}))
	require.NoError(t, err)
}

// Names of classes that the preparation has in another order, or of which it has another number, are an error: before
// the first step for whatever output and field. Other names, as a translation, are none.
func TestWithClasses_inTheOrderOfThePreparation(t *testing.T) {
	network := nn.Dense{Units: 3}
	both := flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		return map[string]*graph.Node{"kind": nn.Dense{Units: 3}.Apply(scope.In("kind"), input("x")), "size": nn.Dense{Units: 1}.Apply(scope.In("size"), input("x"))}
	})
	one := flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		return map[string]*graph.Node{"kind": network.Apply(scope, input("x"))}
	})
	right, wrong := []string{"class_0", "class_1", "class_2"}, []string{"class_2", "class_1", "class_0"}
	p, set := numbered(t, "y", right...), tabled(t, 32, right...)
	train := func(n nn.Layer, options ...flaxlike.Option) error {
		m, err := flaxlike.New(t.Context(), n, append(options, flaxlike.WithStrategy(jit(t)))...)
		if err == nil {
			err = errors.Join(m.Init(t.Context(), first(t, set, 32)), m.Close())
		}
		return err
	}
	order := `has the names of the classes in another order than field "%s" of the preparation: class 0 is "class_2" by %s, and "class_0" by the preparation`
	for name, c := range map[string]struct {
		network nn.Layer
		p       *tables.Preparation
		options []flaxlike.Option
		err     string
	}{
		"another order":          {network, p, []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithClasses(wrong)}, fmt.Sprintf("WithClasses "+order, "y", "WithClasses")},
		"another number":         {network, p, []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithClasses(right[:2])}, `WithClasses names 2 classes, and field "y" of the preparation has 3`},
		"another order, no loss": {network, p, []flaxlike.Option{flaxlike.WithClasses(wrong)}, fmt.Sprintf("WithClasses "+order, "y", "WithClasses")},
		"another order, the only output": {one, p, []flaxlike.Option{flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "kind"}), flaxlike.WithClasses(wrong)},
			fmt.Sprintf("WithClasses "+order, "y", "WithClasses")},
		"another order, by output": {both, numbered(t, "kind", right...), []flaxlike.Option{flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "kind"}, flaxlike.Loss{Name: "mse", Output: "size"}),
			flaxlike.WithClasses(map[string][]string{"kind": wrong})}, fmt.Sprintf("WithClasses "+order, "kind", "WithClasses")},
		"another order, by label": {network, numbered(t, "sort", right...), []flaxlike.Option{flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Label: "sort"}), flaxlike.WithClasses(wrong)},
			fmt.Sprintf("WithClasses "+order, "sort", "WithClasses")},
		"partly another order": {network, p, []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithClasses([]string{"class_2", "eins", "null"})},
			fmt.Sprintf("WithClasses "+order, "y", "WithClasses")},
		"the same":      {network, p, []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithClasses(right)}, ""},
		"a translation": {network, p, []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithClasses([]string{"null", "eins", "zwei"})}, ""},
		"no names":      {network, p, []flaxlike.Option{flaxlike.WithLoss(sparse)}, ""},
		"no classes":    {network, numbered(t, ""), []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithClasses(wrong)}, ""},
	} {
		err := train(c.network, append(c.options, flaxlike.WithPreparation(c.p))...)
		if c.err == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.err, name)
		}
	}

	m := newModel(t, network, flaxlike.WithLoss(sparse), flaxlike.WithClasses(wrong)) // as an earlier lazo saved it
	require.NoError(t, m.Init(t.Context(), first(t, sorted(t, 32), 32)))
	path := filepath.Join(t.TempDir(), "m.safetensors")
	require.NoError(t, m.Save(path))
	_, err := opened(t, path, flaxlike.WithPreparation(p))
	require.ErrorContains(t, err, fmt.Sprintf("the file "+order, "y", "the file"))
	_, err = opened(t, path, flaxlike.WithClasses(right))
	require.ErrorContains(t, err, `WithClasses names the classes ["class_0" "class_1" "class_2"], and the file ["class_2" "class_1" "class_0"], in whose order the weights were trained`)
	_, err = opened(t, path, flaxlike.WithClasses([]string{"zwei", "class_0", "null"}))
	require.ErrorContains(t, err, `"class_0" is class 1 by WithClasses, and 2 in the file`)
	_, err = opened(t, path, flaxlike.WithClasses([]string{"zwei", "class_1", "null"}))
	require.NoError(t, err)
	_, err = opened(t, path, flaxlike.WithPreparation(p), flaxlike.WithClasses(right))
	require.NoError(t, err)

	err = train(nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithPreparation(p))
	require.ErrorContains(t, err, "the labels of the preparation have 3 classes, and the output (Float32)[32, 1] has 1\n"+
		"  for labels that are classes end the network with nn.Dense{Units: 3}; for labels that are numbers fit the preparation with tables.Labels{Numbers: true}")

	given := newModel(t, one, flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "kind", Label: "y"}), flaxlike.WithClasses([]string{"null", "eins", "zwei"}), flaxlike.WithPreparation(p))
	require.Equal(t, []string{"null", "eins", "zwei"}, must.M1(must.M1(given.Predict(t.Context(), set)).ClassNames()), "those that are given")
}

// The preparation of a file is the one that its weights were trained with: Open refuses another one, and takes the same
// one, or any where the file has none.
func TestOpen_refusesAnotherPreparation(t *testing.T) {
	path, p, other := filepath.Join(t.TempDir(), "m.safetensors"), numbered(t, "y", "a", "b", "c"), numbered(t, "y", "a", "b", "d")
	m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithPreparation(p))
	require.NoError(t, m.Init(t.Context(), first(t, tabled(t, 4, "a", "b", "c"), 4)))
	require.NoError(t, m.Save(path))
	_, err := opened(t, path, flaxlike.WithPreparation(other))
	require.ErrorContains(t, err, "WithPreparation: the file has another preparation")
	same, err := opened(t, path, flaxlike.WithPreparation(numbered(t, "y", "a", "b", "c")))
	require.NoError(t, err)
	require.Equal(t, p, same.Preparation())

	m = newModel(t, nn.Dense{Units: 3})
	require.NoError(t, m.Init(t.Context(), first(t, sorted(t, 4), 4)))
	require.NoError(t, m.Save(path))
	_, err = opened(t, path, flaxlike.WithPreparation(other))
	require.NoError(t, err)
}

// hidden keeps its setting to itself.
type hidden struct{ by float64 }

func (h hidden) Apply(_ *model.Scope, x *graph.Node) *graph.Node {
	return graph.MulScalar(x, h.by)
}

// Save writes the lengths of the training batches, whatever lengths were evaluated and predicted later; without
// training those of the first batch.
func TestSave_inputsOfTheTraining(t *testing.T) {
	sequences := func(n int) *data.Set {
		return must.M1(data.New(data.X(make([]int32, 8*n), 8, n), data.Y(make([]float32, 8), 8, 1)))
	}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	m := newModel(t, nn.Sequential{nn.Embedding{Vocabulary: 5, Width: 2}, nn.GlobalMeanPool{}, nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"))
	saved := func(of *flaxlike.Model) []int {
		require.NoError(t, of.Save(path))
		return must.M1(flaxlike.Describe(path)).Inputs[0].Dims
	}
	must.M1(m.Predict(t.Context(), sequences(4)))
	must.M1(m.Predict(t.Context(), sequences(5)))
	require.Equal(t, []int{4}, saved(m), "without training the first batch")
	must.M1(m.Fit(t.Context(), sequences(6), quiet(flaxlike.Fit{Validation: sequences(3)})))
	require.Equal(t, []int{6}, saved(m))
	must.M1(m.Predict(t.Context(), sequences(2)))
	must.M1(m.Evaluate(t.Context(), sequences(7)))
	require.Equal(t, []int{6}, saved(m))
	again, err := opened(t, path)
	require.NoError(t, err)
	must.M1(again.Predict(t.Context(), sequences(3)))
	require.Equal(t, []int{6}, saved(again))
}

// Each bit of what a file says of its model counts: one that is turned is an error, and so is a text that is no model.
func TestOpen_rotten(t *testing.T) {
	set, path := tabled(t, 64, "ant", "bee", "cat"), filepath.Join(t.TempDir(), "model.safetensors")
	m := fitted(t)
	require.NoError(t, m.Init(t.Context(), first(t, set, 16)))
	require.NoError(t, m.Save(path))
	good := must.M1(os.ReadFile(path))
	at := bytes.Index(good, []byte(`{\"version`))
	require.Positive(t, at)
	for i := at; i < at+400; i += 3 {
		rotten := bytes.Clone(good)
		rotten[i] ^= 1
		require.NoError(t, os.WriteFile(path, rotten, 0o600))
		_, err := opened(t, path)
		require.ErrorContains(t, err, path)
		var format *safetensors.FormatError
		require.True(t, errors.Is(err, safetensors.ErrChecksum) || errors.As(err, &format), "%d: %v", i, err)
	}
	for text, want := range map[string]string{
		`[]`:                           "cannot unmarshal",
		`{"version":9}`:                "has version 9, expected 1",
		`{"version":1,"batch_size":1}`: "the network is code",
		`{"version":1,"batch_size":1,"network":{"layer":"Dense","settings":{"Unit":3}}}`:                                                                    `it has a setting "Unit", which nn.Dense does not have`,
		`{"version":1,"batch_size":1,"network":{"layer":"Dense","layers":[{"layer":"Flatten"}]}}`:                                                           `it contains layers, but its kind contains none`,
		`{"version":1,"batch_size":1,"network":{"layer":"Named"}}`:                                                                                          `it contains 0 layers, expected one`,
		`{"version":1,"batch_size":1,"network":{"layer":"Mystery"}}`:                                                                                        `unknown name`,
		`{"version":1,"batch_size":0,"network":{"layer":"Flatten"}}`:                                                                                        `the batch size is 0`,
		`{"version":1,"batch_size":1,"network":{"layer":"Flatten"},"losses":[{"name":"mystery"}]}`:                                                          `unknown name`,
		`{"version":1,"batch_size":1,"network":{"layer":"Flatten"},"inputs":[{"name":"x","type":"Float32","dims":[2000000000,2000000000]}]}`:                `expected lengths of 1 and up`,
		`{"version":1,"batch_size":1,"network":{"layer":"Flatten"},"inputs":[{"name":"x","type":"float23","dims":[2]}]}`:                                    `float23`,
		`{"version":1,"batch_size":1,"network":{"layer":"Dense","settings":{"Units":1000000}},"inputs":[{"name":"x","type":"Float32","dims":[2,1000000]}]}`: `the file has no "bias"`,
	} {
		writeModel(t, path, text)
		_, err := opened(t, path, flaxlike.WithOptimizer("sgd"))
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "flaxlike: open "+path)
	}
}

// nested is a network of residual layers within each other.
func nested(depth int) nn.Layer {
	if depth == 0 {
		return nn.Dense{Units: 2}
	}
	return nn.Residual{nested(depth - 1)}
}

// S46: the layers of a file are limited in number and in nesting: the time to build 1,600 nested ones (61 kB) was 44 s,
// without an end by the context. Save writes no network that Open would refuse.
func TestS46_openLimitsLayers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	const network = `{"version":1,"batch_size":1,"network":%s,"inputs":[{"name":"x","type":"Float32","dims":[1,2]}]}`
	deep := strings.Repeat(`{"layer":"Residual","layers":[`, 1600) + `{"layer":"Flatten"}` + strings.Repeat(`]}`, 1600)
	wide := `{"layer":"Sequential","layers":[` + strings.Repeat(`{"layer":"Flatten"},`, 5000) + `{"layer":"Flatten"}]}`
	for text, want := range map[string]string{
		deep: "the file's description of the network: layers are nested in each other 65 deep or more, expected at most 64",
		wide: "the file's description of the network: there are more than 5000 layers",
	} {
		writeModel(t, path, fmt.Sprintf(network, text))
		_, err := opened(t, path)
		require.EqualError(t, err, "flaxlike: open "+path+": "+want)
	}
	batch := data.Batch{Fields: []data.Field{data.X(make([]float32, 2), 1, 2)}}
	for depth, want := range map[int]string{64: "", 65: "the file does not have it: layers are nested in each other 65 deep or more"} {
		m := newModel(t, nested(depth))
		require.NoError(t, m.Init(t.Context(), batch))
		require.NoError(t, m.Save(path))
		_, err := opened(t, path)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// S47: messages about a file repeat no long name of it, whatever it names.
func TestS47_longNamesOfAFile(t *testing.T) {
	path, long := filepath.Join(t.TempDir(), "model.safetensors"), strings.Repeat("a", 600_000)
	for _, row := range []struct{ input, dims, more, want string }{
		{"x", "1,2", `"classes":{"` + long + `":["a","b"]}`, "the model has the outputs"},
		{long, "2", `"seed":1`, `the batch has no field "x"`},
		{"x", "1,2", `"losses":[{"name":"` + long + `"}]`, "known: "},
	} {
		writeModel(t, path, fmt.Sprintf(`{"version":1,"batch_size":1,"network":{"layer":"Dense","settings":{"Units":1}},"inputs":[{"name":%q,"type":"Float32","dims":[%s]}],%s}`, row.input, row.dims, row.more))
		_, err := opened(t, path)
		require.ErrorContains(t, err, row.want)
		require.Less(t, len(err.Error()), 3000, row.want)
	}
}

// writeModel is a file with another text about its model, and one value.
func writeModel(t testing.TB, path, text string) {
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, []safetensors.Tensor{{Name: "a", DType: safetensors.F32, Dims: []int{1}}}, map[string]string{
		"lazo.model": text, "lazo.model_crc32c": safetensors.Checksum(0).Update([]byte(text)).String()})
	require.NoError(t, err)
	_, err = w.Write("a", make([]byte, 4))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
}
