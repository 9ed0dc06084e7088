package metrics_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
)

func TestCollection_refuses(t *testing.T) {
	r := plugintest.Go(t)
	loss := metrics.Entry{Name: "loss", Metric: metrics.Mean(), Inputs: []string{"loss"}, Weights: "mask"}
	for _, row := range []struct {
		name       string
		collection metrics.Collection
		outputs    []string
		want       string
	}{
		{"no such output", metrics.Collection{loss}, []string{"mask", "other"}, `metrics: collection: "loss" needs the output "loss"; there are: mask, other`},
		{"no such mask", metrics.Collection{loss}, []string{"loss"}, `metrics: collection: "loss" needs the output "mask"; there are: loss`},
		{"a name twice", metrics.Collection{loss, loss}, nil, `metrics: collection: entry 1 has the name "loss": expected a name that is not empty and that no other entry has`},
		{"no name", metrics.Collection{{Metric: metrics.Mean()}}, nil, `entry 0 has the name ""`},
		{"no metric", metrics.Collection{{Name: "loss"}}, nil, `metrics: collection: entry "loss" has no metric`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := graph.CallOnce(r, func(g *graph.Graph) *graph.Node {
				outputs := map[string]*graph.Node{}
				for _, name := range row.outputs {
					outputs[name] = graph.Const(g, []float32{1})
				}
				return row.collection.Update(row.collection.Initial(g), outputs)[0]
			})
			require.ErrorContains(t, err, row.want)
		})
	}
}
