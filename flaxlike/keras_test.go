package flaxlike_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

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

// Losses have Keras's values and slopes, and metrics of their names the values; the padding of a batch changes nothing.
//
//lazo:norace
func TestLosses_asKeras(t *testing.T) {
	var f struct {
		Keras  string
		Losses []struct {
			Name                string
			Delta, Gamma, Alpha float64
			Labels, Output      []float32
			Value               float64
			Gradient            []*float64
		}
	}
	raw, err := os.ReadFile("testdata/keras.json") // written by make_fixtures.py there
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &f))
	of := map[string]flaxlike.Option{} // metrics of the same name and value
	for _, name := range []string{"poisson", "log_cosh", "mape", "msle", "mean_absolute_percentage_error", "mean_squared_logarithmic_error", "hinge",
		"squared_hinge", "categorical_hinge", "kl_divergence", "categorical_crossentropy", "binary_crossentropy", "mean_squared_error", "mean_absolute_error"} {
		of[name] = flaxlike.WithMetrics(name)
	}
	require.Len(t, f.Losses, 22)
	worst, slopes, figures := 0.0, 0, 0
	for _, row := range f.Losses {
		t.Run(row.Name, func(t *testing.T) {
			near := func(want, got float64) {
				t.Helper()
				off := math.Abs(got-want) / max(1, math.Abs(want))
				require.LessOrEqual(t, off, 1e-5, "%g, expected %g", got, want)
				worst = max(worst, off)
			}
			const n, width = 6, 4
			loss, err := losses.Named(row.Name, losses.Settings{Delta: row.Delta, Gamma: row.Gamma, Alpha: row.Alpha})
			require.NoError(t, err)
			gradient, err := graph.CallOnce(plugintest.CPU(t), func(labels, output *graph.Node) *graph.Node {
				return graph.Gradient(graph.ReduceAllMean(loss(labels, output)), output)[0]
			}, tensors.FromFlatDataAndDimensions(row.Labels, n, width), tensors.FromFlatDataAndDimensions(row.Output, n, width))
			require.NoError(t, err)
			got, err := tensors.CopyFlatData[float32](gradient)
			require.NoError(t, err)
			for i, want := range row.Gradient {
				if want != nil {
					near(*want, float64(got[i]))
					slopes++
				}
				require.False(t, math.IsNaN(float64(got[i])))
			}
			set := must.M1(data.New(data.X(row.Output, n, width), data.Y(row.Labels, n, width)))
			options := []flaxlike.Option{flaxlike.WithLoss(flaxlike.Loss{Name: row.Name, Delta: row.Delta, Gamma: row.Gamma, Alpha: row.Alpha}), flaxlike.WithBatchSize(n + 2)}
			if o, there := of[row.Name]; there {
				options = append(options, o)
			}
			network := nn.Func(identity)
			if row.Name == "dice" || row.Name == "tversky" {
				network = clipped
			}
			found, err := newModel(t, network, options...).Evaluate(t.Context(), set)
			require.NoError(t, err)
			near(row.Value, found["loss"])
			if value, there := found[row.Name]; there {
				near(row.Value, value)
				figures++
			}
		})
	}
	require.Equal(t, len(of)-2, figures) // two are short names
	t.Logf("Keras %s: %d losses, %d slopes, %d metrics; at most %.1e apart, relative to numbers above 1", f.Keras, len(f.Losses), slopes, figures, worst)
}

func clipped(_ *model.Scope, x *graph.Node) *graph.Node { return graph.ClipScalar(x, 0, 1) }

// GRU is Keras's, with its weights in their order.
func TestGRU_asKeras(t *testing.T) {
	var f struct {
		GRU struct {
			Input, Output []float32
			Weights       [][][]float32
		}
	}
	raw, err := os.ReadFile("testdata/keras.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &f))
	set := must.M1(data.New(data.X(f.GRU.Input, 2, 5, 4)))
	m := newModel(t, nn.GRU{Units: 3, Last: true})
	require.NoError(t, m.Init(t.Context(), first(t, set, 2)))
	for i, name := range []string{"kernel", "recurrent_kernel", "bias"} {
		require.NoError(t, m.SetValue("/model/"+name, tensor(f.GRU.Weights[i])))
	}
	out, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.InDeltaSlice(t, f.GRU.Output, output(t, out).Flat, 1e-6)
	t.Logf("%d numbers within 1e-6", len(f.GRU.Output))
}
