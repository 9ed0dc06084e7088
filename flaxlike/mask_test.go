package flaxlike_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

// ragged is a model of sequences, whose mask an embedding makes: a label for each place, and a number of the mean and
// of the last state.
func ragged() flaxlike.Functional {
	own := func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Tanh(x) }
	return func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		h := nn.Embedding{Vocabulary: 7, Width: 4, Padding: new(0)}.Apply(scope.In("tokens"), input("x"))
		h = nn.Sequential{nn.LSTM{Units: 4}, nn.Residual{nn.Attention{Heads: 2, Width: 2}}, nn.Func(own), nn.LayerNorm{}, nn.BatchNorm{},
			nn.GRU{Units: 2, Bidirectional: true}}.Apply(scope.In("trunk"), h)
		return map[string]*graph.Node{
			"tags": nn.Dense{Units: 3}.Apply(scope.In("tags"), h),
			"mean": nn.Sequential{nn.GlobalMeanPool{}, nn.Dense{Units: 1}}.Apply(scope.In("mean"), h),
			"last": nn.Sequential{nn.SimpleRNN{Units: 3, Last: true}, nn.Dense{Units: 1}}.Apply(scope.In("last"), h),
		}
	}
}

// A mask reaches the layers, the losses and the metrics of a model without being handed round: outputs, losses,
// gradients and metrics are Keras's, and further places that do not count, or examples that pad the batch, change none
// of them.
//
//lazo:norace
func TestMasks_asKeras(t *testing.T) {
	var f struct {
		IDs, Tags       [][]int32
		Score           []float32
		Outputs         [][]float32
		Loss            []float64
		Total, Accuracy float64
		Weights         map[string]struct {
			Dims           []int
			Flat, Gradient []float32
		}
	}
	raw, err := os.ReadFile("testdata/masks.json") // written by masks.py there
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &f))
	n := len(f.IDs)
	strategies := maskedOn(t)
	for i := range len(maskedPlaces) * len(strategies) {
		places, strategy := maskedPlaces[i/len(strategies)], strategies[i%len(strategies)]
		var ids, tags []int32
		counts := make([]bool, 0, n*places)
		for i := range f.IDs {
			for at := range places {
				id, tag := int32(0), int32(2) // another label than Keras's, where it does not count
				if at < 5 && f.IDs[i][at] != 0 {
					id, tag = f.IDs[i][at], f.Tags[i][at]
				}
				ids, tags, counts = append(ids, id), append(tags, tag), append(counts, id != 0)
			}
		}
		set, err := data.New(data.X(ids, n, places), data.Named("tags", tags, n, places), data.Named("mean", f.Score, n, 1), data.Named("last", f.Score, n, 1))
		require.NoError(t, err)
		right := func(labels, output *graph.Node) *graph.Node {
			return graph.ConvertDType(graph.Equal(labels, graph.ArgMax(output, -1, labels.DType())), dtypes.Float32)
		}
		m := newModel(t, ragged(), flaxlike.WithStrategy(strategy), flaxlike.WithBatchSize(n+2), flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(1),
			flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "tags"}, flaxlike.Loss{Name: "mse", Output: "mean"}, flaxlike.Loss{Name: "mse", Output: "last"}),
			flaxlike.WithMetrics(flaxlike.Metric{Name: "accuracy", Output: "tags"}, flaxlike.Metric{Name: "own", Func: right, Output: "tags"},
				flaxlike.Metric{Name: "crossentropy", Output: "tags"}))
		require.NoError(t, m.Init(t.Context(), first(t, set, n)))
		mine := 0
		for _, name := range m.Names() {
			if name != "/#rngState" && !strings.HasSuffix(name, "/mean") && !strings.HasSuffix(name, "/variance") && !strings.HasSuffix(name, "/avg_weight") {
				mine++
			}
		}
		require.Equal(t, len(f.Weights), mine)
		for name, w := range f.Weights {
			v, err := m.Value("/model/" + name)
			require.NoError(t, err)
			require.NoError(t, m.SetValue("/model/"+name, tensors.FromFlatDataAndDimensions(w.Flat, v.Shape().Dimensions...)))
		}
		out, err := m.Predict(t.Context(), set)
		require.NoError(t, err)
		worst := 0.0
		near := func(what string, want, got float64) {
			t.Helper()
			require.InDelta(t, want, got, 2e-6, what)
			worst = max(worst, math.Abs(want-got))
		}
		for i, count := range counts {
			for k := range 3 {
				if at := i % places; count {
					near("tags", float64(f.Outputs[0][(i/places*5+at)*3+k]), float64(output(t, out, "tags").Flat.([]float32)[i*3+k]))
				}
			}
		}
		for i := range n {
			near("mean", float64(f.Outputs[1][i]), float64(output(t, out, "mean").Flat.([]float32)[i]))
			near("last", float64(f.Outputs[2][i]), float64(output(t, out, "last").Flat.([]float32)[i]))
		}
		found, err := m.Evaluate(t.Context(), set) // with examples that pad the batch
		require.NoError(t, err)
		for name, want := range map[string]float64{"tags_loss": f.Loss[0], "mean_loss": f.Loss[1], "last_loss": f.Loss[2], "loss": f.Total,
			"tags_accuracy": f.Accuracy, "tags_own": f.Accuracy, "tags_crossentropy": f.Loss[0]} {
			near(name, want, found[name])
		}
		_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{BatchSize: n}))
		require.NoError(t, err)
		for name, w := range f.Weights {
			v, err := m.Value("/model/" + name)
			require.NoError(t, err)
			after, err := tensors.CopyFlatData[float32](v)
			require.NoError(t, err)
			for i, g := range w.Gradient {
				near("gradient of "+name, float64(w.Flat[i]-g), float64(after[i]))
			}
		}
		t.Logf("%d places, %v: outputs, losses, metrics and %d gradients within %.1e", places, strategy, len(f.Weights), worst)
	}
}

// A mask stays where batch and positions stay, in custom layers too, and is removed after layers that change them.
func TestMaskOf(t *testing.T) {
	half := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node {
		return graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, 2))
	})
	square := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Square(x) })
	for name, row := range map[string]struct {
		layer nn.Layer
		stays bool
	}{
		"dense":                 {nn.Dense{Units: 2}, true},
		"of nn":                 {nn.Dense{Units: 2}, true},
		"own":                   {square, true},
		"several":               {nn.Sequential{square, nn.Named{Name: "two", Layer: nn.Conv{Channels: 2, Window: []int{3}}}, nn.Dropout{Rate: 0.1}}, true},
		"states":                {nn.LSTM{Units: 4}, true},
		"fewer places":          {half, false},
		"pooled":                {nn.MaxPool{Window: 2}, false},
		"pooled, and as before": {nn.Sequential{nn.MaxPool{Window: 2}, nn.Reshape{4, 2}}, false},
		"as many units":         {nn.LSTM{Units: 4, Last: true}, false},
		"flat":                  {nn.Flatten{}, false},
		"added to":              {nn.Residual{nn.Dense{Units: 4}}, true},
	} {
		var got []bool
		network := func(scope *model.Scope, x *graph.Node) *graph.Node {
			x = nn.Masked(x, graph.Const(x.Graph(), []int32{3, 1}))
			y := nn.Sequential{row.layer}.Apply(scope, x)
			got = []bool{nn.MaskOf(x) != nil, nn.MaskOf(nn.Masked(x, nil)) != nil, nn.MaskOf(y) != nil}
			return y
		}
		m := newModel(t, nn.Func(network))
		require.NoError(t, m.Init(t.Context(), data.Batch{Fields: []data.Field{data.X(make([]float32, 2*4*4), 2, 4, 4)}, Size: 2}), name)
		require.Equal(t, []bool{true, false, row.stays}, got, name)
	}
}

// A loss that has no value for each place cannot leave places out, and says so.
func TestMasks_ofALossOfExamples(t *testing.T) {
	network := func(_ *model.Scope, x *graph.Node) *graph.Node {
		return nn.Masked(x, graph.Const(x.Graph(), []int32{3, 1}))
	}
	of := flaxlike.Loss{Name: "own", Func: func(_, output *graph.Node) *graph.Node { return graph.ReduceMean(output, 1, 2) }}
	set, err := data.New(data.X(make([]float32, 2*4*4), 2, 4, 4), data.Y(make([]float32, 2), 2))
	require.NoError(t, err)
	_, err = newModel(t, nn.Func(network), flaxlike.WithLoss(of), flaxlike.WithBatchSize(2)).Evaluate(t.Context(), set)
	require.ErrorContains(t, err, `loss "own" gives (Float32)[2] for an output with the mask (Bool)[2, 4]: expected a value for each place, [batch, places, …]`)
}

// Slopes at ties are those of Keras on JAX: of relu and its kind at 0 and where they end, and of losses where two are
// equal. GoMLX's Max, the control, has the whole slope of the first one there.
func TestSlopesAtTies(t *testing.T) {
	type function = func(scope *model.Scope, x *graph.Node) *graph.Node
	type row struct {
		name    string
		f       function
		x, want []float32
	}
	const sixth = 1.0 / 6
	at, none := []float32{-6, -3, 0, 3, 6}, float32(math.Copysign(0, -1))
	rows := []row{
		{"relu of -0", func(_ *model.Scope, x *graph.Node) *graph.Node { return nn.Relu(x) }, []float32{none}, []float32{0}},
		{"Max", func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Max(x, graph.ZerosLike(x)) }, []float32{0}, []float32{1}},
	}
	for name, want := range map[string][]float32{
		"relu":         {0, 0, 0, 1, 1},
		"relu6":        {0, 0, 0, 1, 0},
		"leaky_relu":   {0.2, 0.2, 1, 1, 1},
		"hard_sigmoid": {0, 0, sixth, 0, 0},
		"hard_swish":   {0, 0, 0.5, 1, 1},
		"selu":         {0.0043579387, 0.08753057, 1.7580993, 1.050701, 1.050701},
		"silu":         {-0.012326431, -0.088104106, 0.5, 1.0881041, 1.0123262},
	} {
		rows = append(rows, row{name, nn.Activation(name).Apply, at, want})
	}
	for _, of := range []struct {
		name                 string
		labels, output, want []float32
	}{
		{"hinge", []float32{1, -1}, []float32{1, -1}, []float32{-0.5, 0.5}},
		{"squared_hinge", []float32{1, -1}, []float32{1, -1}, []float32{0, 0}},
		{"categorical_hinge", []float32{0, 1, 0}, []float32{0.5, 1, 0.5}, []float32{0.5, -1, 0.5}},
		{"categorical_hinge", []float32{0, 1, 0}, []float32{0, 1, -2}, []float32{0.25, -0.5, 0}},
		{"mean_absolute_error", []float32{1, 2}, []float32{1, 3}, []float32{-1, 1}},
		{"mape", []float32{1, 2}, []float32{1, 3}, []float32{-100, 50}},
		{"huber", []float32{1, 2, 0}, []float32{1, 3, -1}, []float32{0, 1, -1}},
		{"log_cosh", []float32{1, 2}, []float32{1, 3}, []float32{0, 0.7615942}},
		{"msle", []float32{1, 0}, []float32{1, 0}, []float32{0, 0}},
		{"binary_crossentropy", []float32{1, 0}, []float32{0, 0}, []float32{-0.5, 0.5}},
		{"binary_focal_crossentropy", []float32{1, 0}, []float32{0, 0}, []float32{-0.2982868, 0.2982868}},
	} {
		loss, err := losses.Named(of.name)
		require.NoError(t, err)
		rows = append(rows, row{of.name, func(_ *model.Scope, x *graph.Node) *graph.Node {
			return loss(graph.Const(x.Graph(), [][]float32{of.labels}), x)
		}, of.output, of.want})
	}
	scope := model.NewStore().RootScope()
	found, err := graph.CallOnce(plugintest.CPU(t), func(one *graph.Node) *graph.Node {
		sum, all := graph.ScalarZero(one.Graph(), one.DType()), []*graph.Node{}
		for _, r := range rows {
			x := graph.Mul(graph.Const(one.Graph(), [][]float32{r.x}), one)
			sum, all = graph.Add(sum, graph.ReduceAllSum(r.f(scope, x))), append(all, x)
		}
		return graph.Concatenate(graph.Gradient(sum, all...), 1)
	}, tensors.FromScalar(float32(1)))
	require.NoError(t, err)
	flat, err := tensors.CopyFlatData[float32](found)
	require.NoError(t, err)
	for _, r := range rows {
		require.InDeltaSlice(t, r.want, flat[:len(r.x)], 1e-6, r.name)
		flat = flat[len(r.x):]
	}
}

// Losses of sequences are means over the places that count, whatever the size of the batches: of a mask, of labels
// below 0, with a weight, and of several outputs.
func TestMasks_meansOfAnyBatchSize(t *testing.T) {
	words := nn.Embedding{Vocabulary: 5, Width: 3, Padding: new(0)}
	both := flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		h := words.Apply(scope.In("words"), input("x"))
		return map[string]*graph.Node{"tag": nn.Masked(nn.Dense{Units: 3}.Apply(scope.In("tag"), h), nil), "size": nn.Dense{Units: 1}.Apply(scope.In("size"), h)}
	})
	set, err := data.New(data.X([]int32{1, 0, 0, 2, 0, 0, 3, 4, 1, 2, 2, 1, 0, 0, 0}, 5, 3), data.Y([]float32{9, 1, 1, 1, 0, 1, 1, 3, 1, 2, 1, 5, 7, 7, 7}, 5, 3, 1),
		data.Named("tag", []int32{1, -1, -1, 0, 2, -1, 0, 1, 2, 2, 2, 1, -1, -1, -1}, 5, 3))
	require.NoError(t, err)
	for name, row := range map[string]struct {
		network nn.Layer
		losses  []flaxlike.Loss
	}{
		"a mask":          {nn.Sequential{words, nn.Dense{Units: 1}}, []flaxlike.Loss{{Name: "mse", Weight: 3}}},
		"labels below 0":  {nn.Sequential{nn.Embedding{Vocabulary: 5, Width: 3}, nn.Dense{Units: 3}}, []flaxlike.Loss{{Name: masked, Label: "tag"}}},
		"several outputs": {both, []flaxlike.Loss{{Name: masked, Output: "tag", Weight: 2}, {Name: "mse", Output: "size", Label: "y"}, {Name: "mae", Output: "size", Label: "y", Off: true, Func: losses.AbsoluteError}}},
	} {
		var want map[string]float64
		for _, size := range []int{5, 2, 1} {
			found, err := newModel(t, row.network, flaxlike.WithBatchSize(size), flaxlike.WithLoss(row.losses...)).Evaluate(t.Context(), set)
			require.NoError(t, err)
			if want == nil {
				want = found
			}
			require.InDeltaMapValues(t, want, found, 1e-5, "%s: batches of %d", name, size)
		}
		if len(row.losses) > 1 {
			require.InDelta(t, 2*want["tag_loss"]+want["size_loss"], want["loss"], 1e-5)
		}
	}
	found, err := newModel(t, nn.Sequential{words, nn.Dense{Units: 1}}, flaxlike.WithLoss("mse")).Evaluate(t.Context(), must.M1(set.Slice(4, 5)))
	require.NoError(t, err)
	require.Zero(t, found["loss"], "no place counts")
}
