package optim_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// nested is a model whose names are easily misspelt.
func nested(b *managed.Builder) {
	slope := graph.ReduceAllMean(b.Field("x"))
	for _, name := range []string{"0/stem", "1/trunk", "2/head"} {
		scope := b.Scope().At("model").At("%s", name[:1]).At("%s", name[2:])
		w, bias := scope.VariableWithValue("weights", [][]float32{{1, 2}}), scope.VariableWithValue("biases", []float32{3})
		sum := graph.Add(graph.ReduceAllSum(w.NodeValue(b.Graph())), graph.ReduceAllSum(bias.NodeValue(b.Graph())))
		b.Loss(name[2:], graph.Square(graph.Add(sum, slope)))
	}
}

// A name that matches nothing is an error of the first step, which lists the names: with a misspelt Frozen all would be
// trained.
func TestR07_aNameThatTakesNothing(t *testing.T) {
	r := plugintest.CPU(t)
	batch := slopes(t, 1, 1)[0]
	const there = `; there are ["/model/0/stem/weights" "/model/0/stem/biases" "/model/1/trunk/weights" "/model/1/trunk/biases" "/model/2/head/weights" "/model/2/head/biases"]; set Optional for a match that may match none`
	const trunk = ` (did you mean ["/model/1/trunk"]?)`
	for _, row := range []struct {
		name string
		link optim.Transformation
		want string
	}{
		{"a layer's own name", optim.Frozen(optim.Under("trunk")), `Frozen: Under("trunk") matches no variable of the model` + trunk + there},
		{"at the root", optim.Frozen(optim.Under("/trunk")), `Frozen: Under("/trunk") matches no variable of the model` + trunk + there},
		{"without the number", optim.Frozen(optim.Under("/model/trunk/")), `Frozen: Under("/model/trunk") matches no variable of the model` + trunk + there},
		{"half a name", optim.Frozen(optim.Under("/model/1/tru")), `Frozen: Under("/model/1/tru") matches no variable of the model` + there},
		{"all but", optim.Frozen(optim.Not(optim.Under("head"))), `Frozen: Under("head") matches no variable of the model (did you mean ["/model/2/head"]?)` + there},
		{"masked", optim.Masked(optim.Under("trunk"), optim.Adam{}), `Masked: Under("trunk")`},
		{"a function", optim.Frozen(optim.MatchFunc(func(name string, _ shapes.Shape) bool { return name == "trunk" })), "Frozen: the MatchFunc matches no variable of the model" + there},
		{"decay", optim.WeightDecay{Rate: 0.1, Match: optim.Under("trunk")}, `WeightDecay: Under("trunk")`},
		{"group", optim.Groups(optim.Group{Name: "slow", Match: optim.Under("trunk")}, optim.Group{Name: "rest"}), `group "slow": Under("trunk")`},
		{"group of what is taken", optim.Groups(optim.Group{Name: "all", Match: optim.Under("/model")}, optim.Group{Name: "slow", Match: optim.Under("/model/1")}),
			`group "slow": Under("/model/1") matches no variable that the earlier groups leave; there are []`},
		{"inside a group", optim.Groups(optim.Group{Name: "all", Chain: optim.Chain{optim.WeightDecay{Rate: 0.1, Match: optim.Under("trunk")}}}), `WeightDecay: Under("trunk")`},

		{"the scope", optim.Frozen(optim.Under("/model/1/trunk")), ""},
		{"one parameter", optim.Frozen(optim.Under("/model/1/trunk/weights")), ""},
		{"all of it", optim.Frozen(optim.Not(optim.Under("/"))), ""},
		{"a shape", optim.Masked(optim.RankFrom(3), optim.Clip{Value: 1}), ""},
		{"no shape", optim.Masked(optim.Not(optim.RankFrom(0)), optim.Clip{Value: 1}), ""},
		{"optional", optim.Frozen(optim.Optional(optim.Under("trunk"))), ""},
		{"not what is optional", optim.Masked(optim.Not(optim.Optional(optim.Under("trunk"))), optim.Clip{Value: 1}), ""},
		{"what a group before has, of all but", optim.Groups(optim.Group{Name: "slow", Match: optim.Under("/model/1")}, optim.Group{Name: "rest", Match: optim.Not(optim.Under("/model/1"))}), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, _, err := trainStep(t, nested).Step(t.Context(), newState(t, r, optim.New(1, row.link)), batch)
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
			first, _, _ := strings.Cut(err.Error(), "\n")
			require.Contains(t, first, row.want)
		})
	}

	// A step that trains a part of the model may have an optimizer that names another part.
	only := managed.TrainStep(nested, managed.TrainOnly(func(name string) bool { return strings.HasPrefix(name, "/model/2/") }))
	t.Cleanup(func() { require.NoError(t, only.Close()) })
	_, _, err := only.Step(t.Context(), newState(t, r, optim.New(1, optim.Frozen(optim.Under("/model/1/trunk")), optim.Adam{})), batch)
	require.NoError(t, err)
}
