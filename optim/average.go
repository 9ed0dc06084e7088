package optim

import (
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/internal/awaited"
)

// Average keeps a moving average of the parameters, for evaluation (Polyak and Juditsky 1992): a test step uses it by
// [Average.In]. The averages are corrected for bias: the first is the parameter's value. Steps held back do not count.
// It is a link of the outer chain, not of a [Group].
type Average struct {
	// Decay is the share of the average that an update keeps, above 0 and below 1. It has no default.
	Decay float64
}

func (Average) Name() string { return "average" }

func (t Average) Update(s *Step) {
	s.once(t.Name())
	share("Average.Decay", t.Decay)
	check(t.Decay > 0, "Average.Decay is 0, so the average would be the parameter: expected a share such as 0.999")
	n := s.Number("updates", int64(0))
	s.model.Store().Scope(n.Scope()).SetParam(decayParam, t.Decay)
	s.After(func() {
		s.Set(n, graph.AddScalar(n.NodeValue(s.graph), 1))
		for p := range s.Parameters() {
			count := s.numberOf(p, countSlot, int64(0))
			s.Set(count, graph.AddScalar(count.NodeValue(s.graph), 1))
			s.moment(p, "sum", t.Decay, graph.ConvertDType(p.variable.NodeValue(s.graph), s.dtype))
		}
	})
}

// In builds a part of a graph, usually a test step's, with the averaged parameters. Parameters without an average
// (frozen, or not updated yet) keep their values. managed compiles a step again when parameters were added to the
// training.
//
// In panics if the optimizer's Average has another Decay, and without averages of an earlier training step, perhaps
// only compiled (managed.Stepper.Prepare), or of a restored checkpoint. A training step with In sees the averages
// before its own update.
//
// They are those of the optimizer in this scope, else in the nearest enclosing one, else of the only one with
// averages. In panics if there are several (managed.WithStepOptimizer).
func (t Average) In(scope *model.Scope, g *graph.Graph, build func()) {
	n := t.find(scope, g)
	kept := model.GetParamOr(scope.Store().Scope(n.Scope()), decayParam, t.Decay)
	check(t.Decay == kept, "Average.In has Decay %g, and the averages in %s have %g: expected the value of the optimizer", t.Decay, n.Scope(), kept)
	store, old := scope.Store(), map[*model.Variable]*graph.Node{}
	waiting := awaited.Of(g)
	waiting.Open = true
	saved := func(name string) bool {
		of := t.averaged(n, name)
		return of != "" && store.GetVariable(of) != nil
	}
	bring(waiting, store, saved)
	for _, sum := range slices.Collect(store.Scope(n.Scope()).IterVariables()) {
		name := t.averaged(n, sum.Path())
		if name == "" {
			continue
		}
		v := store.GetVariable(name)
		check(v != nil, "%s is the average of %s, which does not exist", sum.Path(), name)
		count := store.VariableWithValue(model.JoinPath(n.Scope(), name, countSlot), int64(0)).SetTrainable(false)
		value, average, updates := v.NodeValue(g), sum.NodeValue(g), count.NodeValue(g)
		average = graph.Mul(average, unbias(t.Decay, graph.ConvertDType(updates, average.DType())))
		average = graph.Where(graph.IsZero(updates), value, graph.ConvertDType(average, value.DType()))
		old[v] = value
		v.SetNodeValue(average)
	}
	build()
	for v, value := range old {
		v.SetNodeValue(value)
	}
	bring(waiting, store, saved) // of build's variables: the graph is built again with them
}

func bring(waiting *awaited.Values, store *model.Store, which func(name string) bool) {
	for _, name := range slices.Sorted(maps.Keys(waiting.Shapes)) { // all processes create variables in one order
		if which(name) && store.GetVariable(name) == nil {
			waiting.Bring(name)
		}
	}
}

const decayParam = "optim.Average.Decay"

func (Average) averaged(n *model.Variable, path string) string {
	rest, ours := strings.CutPrefix(path, n.Scope())
	name, ok := strings.CutSuffix(rest, "/sum")
	if !ours || !ok {
		return ""
	}
	return name
}

func (t Average) find(scope *model.Scope, g *graph.Graph) *model.Variable {
	below := model.JoinPath(optimizer.Scope, t.Name(), "updates")
	bring(awaited.Of(g), scope.Store(), func(name string) bool { return strings.HasSuffix(name, model.ScopeSeparator+below) })
	for around := scope.Scope(); ; around, _ = model.SplitPath(around) {
		if n := scope.Store().GetVariable(model.JoinPath(around, below)); n != nil {
			return n
		}
		if around == model.RootScopePath {
			break
		}
	}
	var others []*model.Variable
	compiled := false
	for v := range scope.Store().IterVariables() {
		compiled = compiled || strings.HasSuffix(v.Path(), model.ScopeSeparator+model.JoinPath(optimizer.Scope, "learning_rate"))
		if strings.HasSuffix(v.Path(), model.ScopeSeparator+below) {
			others = append(others, v)
		}
	}
	check(len(others) > 0 || !compiled, "there are no averaged parameters in %s: the optimizer has no Average: put an optim.Average into its chain", scopeIn(scope))
	check(len(others) > 0 || !scope.IsTraining(g), "there are no averaged parameters in %s: put an optim.Average into the optimizer's chain if it has none; "+
		"the first compiled training step creates the averages, and this is one: compile one without Average.In before it (managed.Stepper.Prepare), with the same optimizer",
		scopeIn(scope))
	check(len(others) > 0, "there are no averaged parameters in %s: put an optim.Average into the optimizer's chain if it has none, and make a training step first", scopeIn(scope))
	check(len(others) == 1, "%d optimizers keep averages, none of them in the scope %s or around it: %s: give In the scope of one",
		len(others), scope.Scope(), names(others))
	return others[0]
}
