package managed

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// definition is what steps are built from: the model's variables, and what trains them.
type definition struct {
	store     *model.Store
	optimizer *optim.Optimizer
	startRate *float64      // was set before the first training step; nil: the optimizer's own
	policy    *optim.Policy // nil: types are what layers make them
	// resets are the variables of metrics, with what they are set back to; ofOptimizer are those that optimizers
	// brought in.
	resets      map[*model.Variable]metrics.Accumulator
	ofOptimizer map[*model.Variable]bool
	numbers     map[string][]string // awaited.Values.Numbers
	given       store.Given         // values for variables to come
}

// slots are the variables that a graph uses, and what becomes of them.
func (d *definition) slots(g *graph.Graph) (used []*model.Variable, built strategies.Built) {
	for v := range d.store.IterVariables() {
		if !v.InUseByGraph(g) {
			continue
		}
		used = append(used, v)
		slot := strategies.Slot{Parameter: g.GetParameterByName(v.Path())}
		if v.ChangedInGraph(g) {
			slot.New = v.NodeValue(g)
		}
		built.State = append(built.State, slot)
	}
	return used, built
}
