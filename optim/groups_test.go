package optim_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// Each rule and link, alone and before each other one, follows optax's in groups that are trained at different times:
// later, in turns, and in every third step.
func TestS11_groupsAsOptax(t *testing.T) {
	r, want := plugintest.CPU(t), ends(t)
	all := 0
	for i, first := range firstLinks {
		names := []string{first}
		chains := []func(string) optim.Chain{func(p string) optim.Chain { return optim.Chain{links[first](p)} }}
		for j, second := range slices.Sorted(maps.Keys(links)) {
			if j%linksApart != i%linksApart {
				continue
			}
			names = append(names, first+", "+second)
			chains = append(chains, func(p string) optim.Chain { return optim.Chain{links[first](p), links[second](p)} })
		}
		t.Run(first, func(t *testing.T) {
			var groups []optim.Group
			bad := make([]bool, len(chains))
			for i, chain := range chains {
				bad[i] = first == "skip non-finite"
				for _, p := range []string{"w", "b"} {
					groups = append(groups, optim.Group{Name: scopeOf(i) + p, Match: optim.Under("/" + scopeOf(i) + "/" + p), Chain: chain(p)})
				}
			}
			c := newCopies(t, bad...)
			batches := c.batches(t)
			for mode := range modes {
				state := newState(t, r, optim.New(0.02, optim.Groups(groups...)))
				c.train(t, state, mode, batches, 0)
				for i, name := range names {
					require.LessOrEqual(t, c.apart(t, state, i, want[name][mode]), joiningTolerance, "%s, %s", name, mode)
					all++
				}
			}
		})
	}
	t.Logf("%d chains by mode", all)
}

// Holding one group back, by any link, does not change momentum and values of the others. For a slope of 1, momentum
// 0.5 gives 1, 1.5, 1.75, 1.875.
func TestS11_requireInAGroup(t *testing.T) {
	const rate = 0.25
	sums := []float64{1, 2.5, 4.25, 6.125} // of the updates of a momentum that is never held back
	for name, held := range map[string]optim.Transformation{"Require": everySecond{}, "Accumulate": optim.Accumulate(2)} {
		late := optim.Chain{held, optim.Momentum{Decay: 0.5}}
		for form, chain := range map[string]optim.Chain{
			"Groups": {optim.Groups(optim.Group{Name: "late", Match: optim.Under("/late"), Chain: late}, optim.Group{Name: "rest", Chain: optim.Chain{optim.Momentum{Decay: 0.5}}})},
			"Masked": {optim.Masked(optim.Under("/late"), late...), optim.Masked(optim.Not(optim.Under("/late")), optim.Momentum{Decay: 0.5})},
			"last":   {optim.Masked(optim.Not(optim.Under("/late")), optim.Momentum{Decay: 0.5}), optim.Masked(optim.Under("/late"), late...)},
		} {
			t.Run(name+", "+form, func(t *testing.T) {
				state := newState(t, plugintest.CPU(t), optim.New(rate, chain...))
				step := managed.TrainStep(func(b *managed.Builder) {
					of := func(name string) *graph.Node {
						return b.Scope().VariableWithValue(name, float32(8)).NodeValue(b.Graph())
					}
					b.Loss("loss", graph.Add(of("late"), of("other")))
				})
				defer func() { require.NoError(t, step.Close()) }()
				for i := range sums {
					train(t, step, state, []data.Batch{batchOf(t, []float32{1}, 1)})
					require.InDelta(t, 8-rate*sums[i], floats(t, state, "/other")[0], 1e-6, "step %d", i+1)
					want := 8.0
					if n := (i + 1) / 2; n > 0 {
						want -= rate * sums[n-1]
					}
					require.InDelta(t, want, floats(t, state, "/late")[0], 1e-6, "step %d", i+1)
				}
			})
		}
	}
}

// A parameter that joins later, or is trained in turns with others, has its own bias correction and accumulation.
func TestS16_parametersAsOptax(t *testing.T) {
	r, want := plugintest.CPU(t), ends(t)
	c := newCopies(t, false)
	batches := c.batches(t)
	for _, name := range alone {
		var chain optim.Chain
		for link := range strings.SplitSeq(name, ", ") {
			chain = append(chain, links[link]("w"))
		}
		for mode := range modes {
			t.Run(name+", "+mode, func(t *testing.T) {
				state := newState(t, r, optim.New(0.02, chain...))
				c.train(t, state, mode, batches, 0)
				require.LessOrEqual(t, c.apart(t, state, 0, want[name][mode]), joiningTolerance)
			})
		}
	}
}

// Frozen parameters stay bit-identical, including the sign of a zero, whatever the rest of the chain does, and have no
// state.
func TestFrozen_law(t *testing.T) {
	r := plugintest.CPU(t)
	negative := math.Float32frombits(1 << 31)
	build := func(b *managed.Builder) {
		g := b.Graph()
		zeros := b.Scope().VariableWithValue("zeros", []float32{negative, 0, 1}).NodeValue(g)
		b.Loss("loss", graph.Add(bowlLoss(b), graph.ReduceAllSum(graph.Mul(zeros, graph.Slice(graph.ReduceMean(b.Field("x"), 0), graph.AxisRange(0, 3))))))
	}
	frozen := optim.Frozen(optim.MatchFunc(func(name string, _ shapes.Shape) bool { return name != "/w" }))
	for name, chain := range map[string][]optim.Transformation{
		"adam":   {frozen, optim.Adam{}, optim.WeightDecay{Rate: 0.1}},
		"lion":   {frozen, optim.Lion{}, optim.Average{Decay: 0.9}},
		"last":   {optim.Clip{GlobalNorm: 1}, optim.WeightDecay{Rate: 0.1}, frozen},
		"groups": {optim.Groups(optim.Group{Name: "w", Match: optim.Matrices, Chain: optim.Chain{optim.Muon{}}}, optim.Group{Name: "rest", Chain: optim.Chain{optim.Frozen(nil)}})},
	} {
		t.Run(name, func(t *testing.T) {
			state := newState(t, r, optim.New(0.1, chain...))
			train(t, trainStep(t, build), state, slopes(t, 30, 1))
			require.Equal(t, made(4, 3, 7, 4, 0), floats(t, state, "/b"))
			got := floats(t, state, "/zeros")
			require.Equal(t, []uint32{1 << 31, 0, math.Float32bits(1)}, []uint32{math.Float32bits(got[0]), math.Float32bits(got[1]), math.Float32bits(got[2])})
			require.NotEqual(t, made(24, 5, 11, 8, 0), floats(t, state, "/w"))
			for _, n := range state.Names() {
				require.NotContains(t, n, "/b/")
				require.NotContains(t, n, "/b_")
			}
		})
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

// Groups of one name would have one rate in the logs.
func TestFactorsAt_groupsOfOneName(t *testing.T) {
	groups := optim.Groups(optim.Group{Name: "a", Match: optim.Under("/a"), Chain: optim.Chain{optim.Scale(0.5)}}, optim.Group{Name: "a", Chain: optim.Chain{optim.Scale(0.1)}})
	_, err := optim.New(0.5, optim.Adam{}, groups).FactorsAt(1)
	require.EqualError(t, err, `optim: group 2 has the name "a", as an earlier group has: expected another name, since the rates of both would be logged under one name; `+
		`with the name "a_2" it finds the values that earlier versions of lazo have saved for it`)
}
