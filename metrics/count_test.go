package metrics_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla/ops"
)

// Metrics of 1e8 examples are exact: a batch is added to 99,000,000 examples as precisely as to none. The examples are
// 100 times the same million, in batches of 1000 with their own weights. So each value is that of a single batch of a
// million, and each sum is 100 times that batch's. The last million is added batch by batch.
func TestMetrics_1e8Examples(t *testing.T) {
	const size, batches, times = 1000, 200, 500
	r := plugintest.CPU(t)
	c := every()
	c.Collection = append(c.Collection, metrics.Entry{Name: "pearson", Metric: metrics.Pearson(1), Inputs: []string{"a", "b"}, Weights: "weights"})
	n := len(c.Accumulators())
	exec := func(f func([]*graph.Node) []*graph.Node) func(t *testing.T, in ...any) state {
		e, err := graph.NewExec(r, f)
		require.NoError(t, err)
		t.Cleanup(e.Finalize)
		return func(t *testing.T, in ...any) state {
			out, err := e.Call(in...)
			require.NoError(t, err)
			return out
		}
	}
	update := exec(func(in []*graph.Node) []*graph.Node {
		last, _ := ops.Scan(in[:n], in[n:n+1], func(acc, weights []*graph.Node) (next, out []*graph.Node) {
			return c.Update(acc, weights[0], in[n+1:]...), nil
		})
		return last
	})
	merge := exec(func(in []*graph.Node) []*graph.Node {
		last, _ := ops.Scan(in[:n], nil, func(acc, _ []*graph.Node) (next, out []*graph.Node) {
			return c.Merge(acc, in[:n]), nil
		}, ops.Length(times-2))
		return last
	})
	whole := exec(func(in []*graph.Node) []*graph.Node { // all weights at once, and the examples as often as there are batches
		inputs := make([]*graph.Node, len(in)-1)
		for i, x := range in[1:] {
			dims := x.Shape().Dimensions
			x = graph.BroadcastToDims(graph.ExpandAxes(x, 0), append([]int{batches}, dims...)...)
			inputs[i] = graph.Reshape(x, append([]int{batches * size}, dims[1:]...)...)
		}
		return c.Update(c.Initial(in[0].Graph()), graph.Reshape(in[0], batches*size), inputs...)
	})
	g := newGauge(t, r, c)

	random := rand.New(rand.NewPCG(1, 2))
	number := func() float32 { return float32(random.NormFloat64()) }
	examples := make([]example, size)
	for i := range examples {
		e := example{label: random.Int32N(3), truth: random.Int32N(2), a: number(), b: number(), probability: random.Float32()}
		for range 3 {
			e.scores, e.vector = append(e.scores, number()), append(e.vector, number())
		}
		examples[i] = e
	}
	fields := pack(examples, size).inputs
	for _, row := range []struct {
		name   string
		weight func() float32
	}{
		{"weights of 1", func() float32 { return 1 }},
		{"random weights", func() float32 { return 2 * random.Float32() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			weights := make([][]float32, batches)
			for i := range weights {
				for range size {
					weights[i] = append(weights[i], row.weight())
				}
			}
			more := append([]any{weights}, fields...)
			many := update(t, g.empty(t).and(more...)...)
			got := update(t, merge(t, many.and()...).and(more...)...)
			all := whole(t, more...)
			counted := 0
			for i, a := range c.Accumulators() {
				scale := float64(times)
				switch kept := a.Name[strings.LastIndex(a.Name, "/")+1:]; {
				case strings.HasPrefix(a.Name, "last/"):
					continue // of the last batch alone
				case strings.HasPrefix(kept, "mean"), kept == "extreme":
					scale = 1
				}
				have, err := tensors.CopyFlatData[float64](got[i])
				require.NoError(t, err)
				want, err := tensors.CopyFlatData[float64](all[i])
				require.NoError(t, err)
				for j := range want {
					require.InDelta(t, scale*want[j], have[j], 1e-12*scale*max(1, abs(want[j])), a.Name)
					counted++
				}
				if row.name == "weights of 1" && (strings.HasSuffix(a.Name, "/weight")) && !strings.Contains(a.Name, "vectors") {
					require.Equal(t, []float64{size * batches * times}, have, a.Name)
				}
			}
			want, have := g.values(t, all), g.values(t, got)
			require.Len(t, have, len(want))
			for name := range want {
				switch name {
				case "last":
				case "sum", "confusion": // these are sums
				default:
					near(t, want[name], have[name], 1e-12*max(1, abs(want[name][0])), name)
				}
			}
			t.Logf("%d accumulators of 1e8 examples, %d figures", counted, len(want))
		})
	}
}

func abs(x float64) float64 { return max(x, -x) }
