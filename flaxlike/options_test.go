package flaxlike_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// Kernels of a whole model begin as Keras's of the same shape and initializer; biases, a recurrence's own kernel,
// embeddings and what a layer says itself stay as they are without it.
//
//lazo:norace
func TestWithInitializer(t *testing.T) {
	var peers struct {
		Begins map[string]struct{ Deviation, Mean, Greatest float64 } `json:"begins"`
	}
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("../nn/testdata/layers.json")), &peers))
	image := must.M1(data.New(data.X(make([]float32, 2*2*2*40), 2, 2, 2, 40)))
	network := func() nn.Layer {
		return nn.Sequential{nn.Conv{Channels: 100, Window: []int{3, 5}}, nn.BatchNorm{}, nn.ConvTranspose{Channels: 40, Window: []int{3, 5}},
			nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
				return nn.DepthwiseConv{Multiplier: 100, Window: []int{3, 5}}.Apply(scope, x)
			}),
			nn.Reshape{40, 400}, nn.Named{Name: "own", Layer: nn.Dense{Units: 400, Kernel: nn.Initial("ones")}}, nn.GRU{Units: 100, Last: true}, nn.Residual{nn.Dense{Units: 100}}}
	}
	shapes := map[string]string{"0/kernel": "3 5 40 100", "2/kernel": "3 5 40 100", "3/kernel": "3 5 40 100", "6/kernel": "400 300"}
	values := func(m *flaxlike.Model, name string) []float32 {
		return tensors.MustCopyFlatData[float32](must.M1(m.Value("/model/" + name)))
	}
	plain := newModel(t, network(), flaxlike.WithSeed(5))
	require.NoError(t, plain.Init(t.Context(), first(t, image, 2)))
	seen := 0
	for key, want := range peers.Begins {
		name, shape, _ := strings.Cut(key, " ")
		if shape != "3 5 40 100" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m := newModel(t, network(), flaxlike.WithSeed(5), flaxlike.WithInitializer(name))
			require.NoError(t, m.Init(t.Context(), first(t, image, 2)))
			for of, shape := range shapes {
				want = peers.Begins[name+" "+shape]
				var sum, squares, greatest float64
				flat := values(m, of)
				for _, v := range flat {
					sum, squares, greatest = sum+float64(v), squares+float64(v)*float64(v), max(greatest, math.Abs(float64(v)))
				}
				mean := sum / float64(len(flat))
				deviation := math.Sqrt(max(0, squares/float64(len(flat))-mean*mean))
				require.InDelta(t, want.Deviation, deviation, 0.03*want.Deviation+1e-9, of)
				require.InDelta(t, want.Mean, mean, 0.04*want.Deviation, of)
				require.InDelta(t, want.Greatest, greatest, map[bool]float64{true: 0.3, false: 0.02}[name == "random_normal"]*want.Greatest, of)
			}
			for _, of := range []string{"0/bias", "1/norm/scale", "5/own/kernel", "5/own/bias", "6/bias", "7/0/bias"} {
				if v, err := m.Value("/model/" + of); err == nil {
					require.Equal(t, values(plain, of), tensors.MustCopyFlatData[float32](v), of)
					seen++
				}
			}
			kernel, n := values(m, "6/recurrent_kernel"), 0.0 // orthogonal
			for _, v := range kernel[:300] {
				n += float64(v) * float64(v)
			}
			require.InDelta(t, 1, n, 1e-4)
		})
	}
	require.GreaterOrEqual(t, seen, 5*11)
	own := newModel(t, nn.Dense{Units: 7}, flaxlike.WithInitializer(nn.Constant(0.25)))
	require.NoError(t, own.Init(t.Context(), first(t, must.M1(data.New(data.X(make([]float32, 6), 2, 3))), 2)))
	require.Equal(t, float32(0.25), tensors.MustCopyFlatData[float32](must.M1(own.Value("/model/kernel")))[20])
}

func TestWithInitializer_thatTakesNothing(t *testing.T) {
	set := must.M1(data.New(data.X(make([]float32, 6), 2, 3)))
	square := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Square(x) })
	for name, network := range map[string]nn.Layer{
		"no layer with a kernel": nn.Sequential{square, nn.LayerNorm{}},
		"its own says all":       nn.Sequential{nn.Dense{Units: 2, Kernel: nn.Initial("he_normal")}},
	} {
		_, err := newModel(t, network, flaxlike.WithInitializer("he_normal")).Predict(t.Context(), set)
		require.ErrorContains(t, err, "WithInitializer: no kernel uses it", name)
	}
	_, err := newModel(t, nn.Dense{Units: 2}, flaxlike.WithInitializer("he_norml")).Predict(t.Context(), set)
	require.ErrorContains(t, err, `initializer "he_norml": unknown name; did you mean "he_normal"?`)
	require.ErrorContains(t, err, "unknown name")
	_, err = flaxlike.New(t.Context(), square, flaxlike.WithInitializer("zeros"), flaxlike.WithInitializer("ones"))
	require.ErrorContains(t, err, "WithInitializer: given twice")

	m, path := newModel(t, nn.Dense{Units: 2}), filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, m.Init(t.Context(), first(t, set, 2)))
	require.NoError(t, m.Save(path))
	_, err = opened(t, path, flaxlike.WithInitializer("he_normal"))
	require.ErrorContains(t, err, "WithInitializer: all kernels come from the file")
}

func TestWithPolicy_errors(t *testing.T) {
	f16 := flaxlike.WithPolicy(optim.MixedFloat16())
	require.NoError(t, desk{t}.made(f16, flaxlike.WithInnerLosses()))
	require.ErrorContains(t, desk{t}.made(f16, flaxlike.WithOptimizer(optim.GoMLX(optimizer.Adam().Done()))), "cannot scale losses, expected a chain of package optim")
	require.ErrorContains(t, desk{t}.made(flaxlike.WithPolicy(optim.Policy{})), "expected floating-point types")
	require.ErrorContains(t, desk{t}.fit(nn.Sequential{nn.Dense{Units: 3}, nn.Activation("softmax")}, sorted(t, 64), flaxlike.Fit{},
		flaxlike.WithLoss(sparse), flaxlike.WithPolicy(optim.MixedBFloat16())), "went through a softmax")
}

// The whole network may say its losses itself, as an autoencoder does.
func TestInnerLosses(t *testing.T) {
	auto := func(scope *model.Scope, x *graph.Node) *graph.Node {
		y := nn.Dense{Units: 1}.Apply(scope, x)
		managed.AddLoss("reconstruction", graph.Square(graph.Sub(x, y)))
		return y
	}
	m := newModel(t, nn.Func(auto), flaxlike.WithInnerLosses())
	set, err := data.New(line(t, 64).Fields()[0])
	require.NoError(t, err)
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 3}))
	require.NoError(t, err)
	require.Len(t, series(t, h, "reconstruction"), 3)
}

// Whole numbers as sample weights are more likely labels; a class weight that a float32 does not hold is infinite
// there.
func TestWeights_thatAreNone(t *testing.T) {
	set := line(t, 64, data.Named("patient", make([]int32, 64), 64))
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("patient"))
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, `field "patient", which WithSampleWeights names, has Int32: expected float32 or float64`)
	_, err = flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithClassWeights(map[int]float64{0: 1e300}))
	require.ErrorContains(t, err, "the weight of class 0 is 1e+300, expected a class of 0 or more, and a weight from 0 to the largest float32")
}
