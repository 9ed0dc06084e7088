package report_test

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

func newModel(t *testing.T, n nn.Layer, options ...flaxlike.Option) *flaxlike.Model {
	t.Helper()
	m, err := flaxlike.New(t.Context(), n, append(options, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// written is the page's texts, those of drawings too, and how many drawings it has.
func written(t *testing.T, r report.Run) (texts []string, drawings int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "report")
	require.NoError(t, r.Save(t.Context(), dir))
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	if to := os.Getenv("REPORT"); to != "" {
		require.NoError(t, os.WriteFile(to+"_"+filepath.Base(t.Name())+".html", page, 0o600))
	}
	for _, link := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		require.True(t, strings.HasPrefix(link[1], "data:"), link[0])
	}
	require.NotContains(t, string(page), "<script")
	_, body, _ := strings.Cut(string(page), "<body>")
	for d := xml.NewDecoder(strings.NewReader("<body>" + body)); ; {
		token, err := d.Token()
		if err == io.EOF || token == (xml.EndElement{Name: xml.Name{Local: "body"}}) {
			return texts, drawings
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" {
				texts = append(texts, text)
			}
		case xml.StartElement:
			drawings += map[bool]int{true: 1}[token.Name.Local == "svg"]
		}
	}
}

// A classifier of images has all: the card, its curves, the matrix, samples, weights and layers.
func TestSave_ofAClassifier(t *testing.T) {
	training, test, err := data.Digits()
	require.NoError(t, err)
	m := newModel(t, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 16}, nn.Activation("relu"),
		nn.Residual{nn.Dense{Units: 16}}, nn.Dense{Units: 10}},
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"))
	history, err := m.Fit(t.Context(), training, flaxlike.Fit{Epochs: 3, Validation: test, Output: io.Discard})
	require.NoError(t, err)
	names := []string{"zero", "<one>", "two", "three", "four", "five", "six", "seven", "eight", "nine & more"}
	texts, drawings := written(t, report.Run{Title: "digits </title>", Model: m, History: history, Test: test,
		Classes: names})
	for _, text := range []string{"digits </title>", "Run", "135 steps, 4311 examples", "Data",
		"1437 examples: x float32[8 8 1], y int32[]", "360 examples: x float32[360 8 8 1], y int32[360]",
		"Settings", "optimizer", "Versions", "gomlx", "plugin", "accuracy",
		"right classes", "loss", "validation", "learning_rate",
		"<one>", "nine & more", "label", "prediction", "ROC", "Precision and recall", "Samples",
		"the 12 examples with the highest loss of the 64 of 360 with the least probable labels; then 12 others", "Metrics per class", "Reliability", "training checksum",
		"test checksum", "Weights", "1/kernel", "160 weights", "Network", "x  input", "Float32 [32 10]"} {
		require.Contains(t, strings.Join(texts, "\n"), text)
	}
	require.Equal(t, 3+4+24+12+6+1, drawings, "history, matrix and curves, samples, saliency, variables, network")

	// The page shows the batches that a function makes: here the digits of a set that has none.
	none, err := data.New(data.Y(make([]int32, test.Len()), test.Len()))
	require.NoError(t, err)
	made, err := none.MapBatches(func(b data.Batch) (data.Batch, error) {
		rows := make([]int, b.Size)
		batch, err := data.Peek(must.M1(test.Gather(rows)).Batches(b.Size).All())
		return batch, err
	})
	require.NoError(t, err)
	_, drawings = written(t, report.Run{Model: m, Test: made})
	require.Equal(t, 3+24+12+6+1, drawings, "examples of one class have no ROC")

	for what, r := range map[string]report.Run{
		"the model is nil":                                  {},
		`no field "z"; it has ["x" "y"]`:                    {Model: m, Test: test, Label: "z"},
		`Images: the test set has no field "i"`:             {Model: m, Test: test, Images: "i"},
		`output "o": unknown name; the model has ["preds"]`: {Model: m, Test: test, Output: "o"},
		"2 names for 10 classes":                            {Model: m, Test: test, Classes: names[:2]},
		"but no Test set":                                   {Model: m, Classes: names},
		"are not images":                                    {Model: m, Test: test, Images: "y"},
		`the class "zero" is named twice`: {Model: m, Test: test, Classes: append(append([]string{}, names[:9]...),
			"zero")},
	} {
		require.ErrorContains(t, r.Save(t.Context(), t.TempDir()), what)
	}
}

// A network of two inputs is drawn with its arrows; of two classes there is one curve; what is left out is said.
func TestSave_ofWhatThereIs(t *testing.T) {
	m := newModel(t, flaxlike.Functional(func(scope *model.Scope,
		input func(name string) *graph.Node) map[string]*graph.Node {
		left := nn.Dense{Units: 2}.Apply(scope.In("left"), input("a"))
		right := nn.Dense{Units: 2}.Apply(scope.In("right"), input("b"))
		_ = graph.IsFinite(input("a")) // so that infinite inputs are taken
		return map[string]*graph.Node{"y": nn.Dense{Units: 1}.Apply(scope.In("both"), graph.Add(graph.Add(left, right), graph.MulScalar(left, 0)))}
	}), flaxlike.WithLoss(flaxlike.Loss{Name: "binary_crossentropy", Output: "y"}))
	setOf := func(a, y float32) *data.Set {
		set, err := data.New(data.Named("a", []float32{a, 2, 3, 4}, 4, 1), data.Named("b", []float32{4, 3, 2, 1}, 4, 1),
			data.Named("y", []float32{y, 0, 1, 1}, 4, 1))
		require.NoError(t, err)
		return set
	}
	_, drawings := written(t, report.Run{Model: m})
	require.Zero(t, drawings, "a model before its first batch")
	texts, drawings := written(t, report.Run{Model: m, Test: setOf(1, 0)})
	for _, text := range []string{"of the class 1", "no history was given", "Worst examples",
		"a  input", "b  input", "both  Dense"} {
		require.Contains(t, strings.Join(texts, "\n"), text)
	}
	require.Equal(t, 4+1+6+1, drawings, "matrix and curves, importance, variables, network")
	s := m.Summary()
	require.Equal(t, []flaxlike.Arrow{{From: -1, To: 0, Input: "a"}, {From: -1, To: 1, Input: "b"}, {From: 0, To: 2},
		{From: 1, To: 2}, {From: 2, To: 3}}, s.Arrows)

	targets := setOf(1, 0.5)
	texts, _ = written(t, report.Run{Model: m, Test: targets})
	require.Contains(t, texts, "the label 0.5 of example 0 is not one of 2 classes")
	require.ErrorContains(t, report.Run{Model: m, Test: targets, Classes: []string{"no", "yes"}}.Save(t.Context(),
		t.TempDir()), "the label 0.5")

	texts, _ = written(t, report.Run{Model: m, Test: setOf(float32(math.Inf(1)), 0)})
	require.Contains(t, strings.Join(texts, "\n"), "has a NaN", "a model that has diverged has a page, too")
}

// Parameters are those that are trained, on the card as in the diagram; the others stand apart. The loss is a setting,
// inputs have shapes, a history is no training of the model that it is shown with, and a regression is no classifier.
func TestSave_saysOneThingOnce(t *testing.T) {
	n := 64
	x, y := make([]float32, n*8), make([]float32, n)
	for i := range y {
		y[i] = float32(i) / 7
	}
	set, err := data.New(data.X(x, n, 8), data.Y(y, n, 1))
	require.NoError(t, err)
	layers := nn.Sequential{nn.Dense{Units: 4}, nn.BatchNorm{}, nn.Dense{Units: 1}}
	m := newModel(t, layers, flaxlike.WithLoss("mse"))
	history, err := m.Fit(t.Context(), set, flaxlike.Fit{Output: io.Discard})
	require.NoError(t, err)
	texts, _ := written(t, report.Run{Model: m, History: history, Test: set})
	all := strings.Join(texts, "\n")
	require.Contains(t, all, "parameters\n49\nnot trainable\n12 numbers\n", "36 + 8 + 5")
	require.Contains(t, all, "8 parameters, 12 not trainable")
	require.Contains(t, all, "loss\nmse\nweights of classes\n")
	require.Contains(t, all, "Float32 [32 8]\nx  input")
	require.Contains(t, all, "Regression")
	require.ErrorContains(t, report.Run{Model: m, Test: set, Classes: []string{"a", "b"}}.Save(t.Context(), t.TempDir()), "the model is not a classifier")
	require.NotContains(t, all, "the training of this model is unknown")

	other := newModel(t, layers, flaxlike.WithLoss("mse"))
	texts, _ = written(t, report.Run{Model: other, History: history})
	require.Contains(t, texts, "the training of this model is unknown: it has had no Fit, and no step in this program")
	require.NotContains(t, texts, "trained")
}

// cells are those of the table's row of a name, in the nth section of a title.
func cells(texts []string, title string, n int, name string) []string {
	for i, text := range texts {
		if text != title {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		rest := texts[i:]
		at := slices.Index(rest, name)
		return rest[at+1 : at+5]
	}
	return nil
}
