package pretrained_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/pretrained"
)

// A classifier reads the first place alone: the last layer's dense layers compute no other. Labels of tokens need all.
func TestClassifier_firstPlaceAlone(t *testing.T) {
	const texts, places, inner = 3, 5, 32
	for _, kind := range []string{"bert", "roberta", "distilbert", "mpnet"} {
		for all, network := range map[bool]*pretrained.Network{false: opened(t, "testdata/"+kind).Classifier(3), true: opened(t, "testdata/"+kind).TokenClassifier(3)} {
			g := graph.NewGraph(plugintest.CPU(t), kind)
			defer g.Finalize()
			network.Outputs(model.NewStore().RootScope().In("model"), func(name string) *graph.Node {
				return graph.Parameter(g, name, shapes.Make(dtypes.Int32, texts, places))
			})
			var rows []int
			for _, n := range g.Nodes() {
				if dims := n.Shape().Dimensions; n.Type() == graph.NodeTypeDotGeneral && dims[len(dims)-1] == inner {
					rows = append(rows, n.Shape().Size()/inner)
				}
			}
			want := []int{texts * places, texts}
			if all {
				want[1] *= places
			}
			require.Equal(t, want, rows, kind)
		}
	}
}
