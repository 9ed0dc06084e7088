package managed

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

type definition struct {
	store     *model.Store
	optimizer *optim.Optimizer
	startRate *float64 // set early; nil: the optimizer's own
	policy    *optim.Policy
	// resets has metric variables' initial values.
	resets      map[*model.Variable]metrics.Accumulator
	ofOptimizer map[*model.Variable]bool
	numbers     map[string][]string
	given       store.Given
}

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
