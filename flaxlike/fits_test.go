package flaxlike_test

import (
	"encoding/json"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// drawn are n numbers of 64 bits, by the name: splitmix64, as in testdata/fits.py.
func drawn(name string, n int) []uint64 {
	all, x := make([]uint64, n), uint64(crc32.ChecksumIEEE([]byte(name)))
	for i := range all {
		x += 0x9E3779B97F4A7C15
		v := (x ^ x>>30) * 0xBF58476D1CE4E5B9
		v = (v ^ v>>27) * 0x94D049BB133111EB
		all[i] = v ^ v>>31
	}
	return all
}

func uniform(name string, n int) []float32 {
	all := make([]float32, n)
	for i, b := range drawn(name, n) {
		all[i] = float32(b>>40)/(1<<23) - 1
	}
	return all
}

func below(name string, limit uint64, n int) []int32 {
	all := make([]int32, n)
	for i, b := range drawn(name, n) {
		all[i] = int32(b % limit)
	}
	return all
}

func oneIf(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}

// fit is a network that Keras fits, and its data, as in testdata/fits.py.
type fit struct {
	network nn.Layer
	options []flaxlike.Option
	fields  []data.Field
}

var fits = map[string]func() fit{
	"tabular": func() fit {
		x, y := uniform("tabular", 600*8), make([]int32, 600)
		for i := range y {
			r := x[8*i:]
			y[i] = oneIf(r[0]*r[1] > 0) + oneIf(r[2] > 0.25)
		}
		return fit{nn.Sequential{nn.Dense{Units: 32}, nn.Activation("relu"), nn.Dense{Units: 16}, nn.Activation("relu"), nn.Dense{Units: 3}},
			[]flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithOptimizer("adam")},
			[]data.Field{data.X(x, 600, 8), data.Y(y, 600)}}
	},
	"images": func() fit {
		y, x := below("image classes", 4, 300), uniform("images", 300*64)
		for i := range x {
			x[i] += float32(oneIf((i/8%8+2*(i%8))%4 == int(y[i/64])))
		}
		return fit{nn.Sequential{nn.Conv{Channels: 8, Window: []int{3}}, nn.BatchNorm{}, nn.Activation("relu"), nn.MaxPool{Window: 2},
			nn.Flatten{}, nn.Dropout{Rate: 0.3}, nn.Dense{Units: 4}},
			[]flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithOptimizer("rmsprop"), flaxlike.WithLearningRate(0.01)},
			[]data.Field{data.X(x, 300, 8, 8, 1), data.Y(y, 300)}}
	},
	"text": func() fit {
		lengths, x, y := below("text lengths", 10, 400), below("text", 19, 400*12), make([]float32, 400)
		for i := range x {
			if x[i]++; i%12 >= int(lengths[i/12])+3 {
				x[i] = 0
			}
			if x[i] == 1 {
				y[i/12] = 1
			}
		}
		return fit{nn.Sequential{nn.Embedding{Vocabulary: 20, Width: 8, Padding: new(0)}, nn.LSTM{Units: 8, Last: true}, nn.Dense{Units: 1}},
			[]flaxlike.Option{flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.01)},
			[]data.Field{data.X(x, 400, 12), data.Y(y, 400, 1)}}
	},
	"attention": func() fit {
		x, y := below("attention", 16, 300*8), make([]int32, 300)
		for i := range y {
			many := 0
			for _, v := range x[8*i : 8*i+8] {
				many += int(oneIf(v < 8))
			}
			y[i] = oneIf(many > 3) + oneIf(many > 4)
		}
		return fit{nn.Sequential{nn.Embedding{Vocabulary: 16, Width: 16}, nn.Residual{nn.Attention{Heads: 2, Width: 8}}, nn.LayerNorm{},
			nn.Residual{nn.Dense{Units: 32}, nn.Activation("relu"), nn.Dense{Units: 16}}, nn.LayerNorm{},
			nn.GlobalMeanPool{}, nn.Dense{Units: 3}},
			[]flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithOptimizer("adamw"), flaxlike.WithLearningRate(0.01)},
			[]data.Field{data.X(x, 300, 8), data.Y(y, 300)}}
	},
	"outputs": func() fit {
		x, kind, size := uniform("outputs", 400*6), make([]int32, 400), make([]float32, 400)
		for i := range kind {
			r := x[6*i:]
			kind[i], size[i] = oneIf(r[0] > 0)+oneIf(r[1] > 0.5), r[2]-2*r[3]*r[4]+1
		}
		trunk := nn.Sequential{nn.Dense{Units: 16}, nn.Activation("relu")}
		return fit{flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
			h := trunk.Apply(scope.In("trunk"), input("x"))
			return map[string]*graph.Node{"kind": nn.Dense{Units: 3}.Apply(scope.In("kind"), h), "size": nn.Dense{Units: 1}.Apply(scope.In("size"), h)}
		}), []flaxlike.Option{
			flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "kind"}, flaxlike.Loss{Name: "mse", Output: "size", Weight: 0.5}),
			flaxlike.WithMetrics(flaxlike.Metric{Name: "accuracy", Output: "kind"}, flaxlike.Metric{Name: "mae", Output: "size"}),
			flaxlike.WithOptimizer(optim.New(0.05, optim.Momentum{Decay: 0.9}))},
			[]data.Field{data.X(x, 400, 6), data.Named("kind", kind, 400), data.Named("size", size, 400, 1)}}
	},
	"regression": func() fit {
		x, y := uniform("regression", 300*30), make([]float32, 300)
		for i := range y {
			y[i] = x[30*i+27] + 2*x[30*i+25]
		}
		penalised := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
			scope.SetParam(regularizer.ParamL2, 0.01)
			return nn.Dense{Units: 1}.Apply(scope, x)
		})
		return fit{nn.Sequential{nn.GRU{Units: 8, Last: true}, penalised},
			[]flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mae"), flaxlike.WithLearningRate(0.01)},
			[]data.Field{data.X(x, 300, 10, 3), data.Y(y, 300, 1)}}
	},
}

// Six networks begin and end four epochs as Keras's do: the mean of each figure is within three standard errors of that
// of Keras's 20 seeds.
func TestFits_asKeras(t *testing.T) {
	var keras struct {
		Keras string
		Seeds int
		Fits  map[string]map[string][2][2]float64 // network, figure, first and last epoch: mean and deviation
	}
	raw, err := os.ReadFile("testdata/fits.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &keras))
	require.Len(t, keras.Fits, len(fits))
	for _, name := range fitNetworks(slices.Sorted(maps.Keys(fits))) {
		t.Run(name, func(t *testing.T) {
			sums, f := map[string][2]float64{}, fits[name]()
			set := must.M1(data.New(f.fields...))
			training := set.Len() - 96
			for seed := range int64(fitSeeds) {
				m := newModel(t, f.network, append(f.options, flaxlike.WithSeed(seed))...)
				h, err := m.Fit(t.Context(), must.M1(set.Slice(0, training)), quiet(flaxlike.Fit{
					Epochs: 4, Validation: must.M1(set.Slice(training, set.Len()))}))
				require.NoError(t, err)
				for figure := range keras.Fits[name] {
					v := series(t, h, figure)
					require.Len(t, v, 4)
					sums[figure] = [2]float64{sums[figure][0] + v[0], sums[figure][1] + v[3]}
				}
			}
			for _, figure := range slices.Sorted(maps.Keys(sums)) {
				for i, epoch := range []string{"first", "last"} {
					want, deviation := keras.Fits[name][figure][i][0], keras.Fits[name][figure][i][1]
					got, off := sums[figure][i]/fitSeeds, 3*deviation*math.Sqrt(1.0/fitSeeds+1/float64(keras.Seeds))
					if strings.HasSuffix(figure, "accuracy") {
						off = max(off, 1.0/96) // an example
					}
					t.Logf("%s %s: %.4f, Keras %s %.4f ± %.4f", epoch, figure, got, keras.Keras, want, deviation)
					if name == "images" && strings.HasPrefix(figure, "val_") {
						continue // BatchNorm's averages are corrected for their start: docs/from-keras.md
					}
					require.InDelta(t, want, got, off, "%s %s", epoch, figure)
				}
			}
		})
	}
}
