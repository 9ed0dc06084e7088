package managed

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/optim"
)

func (s *Stepper) ruleOf(state *State) *optim.Optimizer {
	if s.rule != nil {
		return s.rule
	}
	return state.model.optimizer
}

// otherRule: optimizers of one name share a rate.
func otherRule(name string, first, rule *optim.Optimizer) error {
	if first == nil || first == rule {
		return nil
	}
	had, has := first.Describe(), rule.Describe()
	for _, part := range slices.Sorted(maps.Keys(had)) {
		if had[part] != has[part] {
			return fmt.Errorf("WithStepOptimizer %q: another step of the state has an optimizer of this name with %s, and this one has %s: "+
				"give the optimizers different names, or both steps the same one", name,
				strings.TrimSpace(part+" "+had[part]), strings.TrimSpace(part+" "+has[part]))
		}
	}
	return nil
}

func (s *Stepper) update(state *State, b *Builder, loss *graph.Node) {
	rule, scope := s.ruleOf(state), state.model.store.RootScope()
	if s.rule != nil {
		if err := otherRule(s.scope, state.settings.rules[s.scope], rule); err != nil {
			panic(err)
		}
		state.settings.rules[s.scope] = rule
	}
	if rule == nil {
		panic(errors.New("the state has no optimizer: give managed.New a WithOptimizer"))
	}
	var trained []*model.Variable
	var parameters []*graph.Node
	b.keepStatistics(loss)
	if s.scope != "" {
		n := stepsBy(scope)
		state.model.ofOptimizer[n] = true
		n.SetNodeValue(graph.AddScalar(n.NodeValue(loss.Graph()), 1))
	}
	var left []string
	untrained := b.untrained(loss)
	before := map[*model.Variable]bool{}
	for v := range state.model.store.IterVariables() {
		before[v] = true
		switch {
		case !v.Trainable || !v.InUseByGraph(loss.Graph()):
		case s.only != nil && !s.only(v.Path()):
			left = append(left, v.Path())
			v.Trainable = false // optimizers look up the gradients' variables
			defer func() { v.Trainable = true }()
		case untrained[v.NodeValue(loss.Graph())]:
			v.Trainable = false
			defer func() { v.Trainable = true }()
		default:
			refuseEarlierUse(loss, v)
			trained, parameters = append(trained, v), append(parameters, v.NodeValue(loss.Graph()))
		}
	}
	b.trained = trained
	if len(parameters) == 0 && len(left) > 0 {
		panic(fmt.Errorf("the train step uses no trainable variable that managed.TrainOnly matches; it uses %q", left))
	}
	if len(parameters) == 0 {
		panic(errors.New("the train step uses no trainable variable, so there is nothing to train: give the builder's Scope to layers"))
	}
	if !autodiff.Reaches(loss, parameters...) {
		panic(errors.New("the loss is computed from no trainable variable by floating-point operations, so every gradient is 0 and nothing would be " +
			"trained: take graph.StopGradient, ArgMax and comparisons out of it, or give the loss the model's output"))
	}
	if s.scope != "" {
		scope = scope.At("%s", s.scope)
	}
	gradients := autodiff.Gradient(rule.ScaleLoss(scope, loss), parameters...)
	defer func() {
		for v := range state.model.store.IterVariables() {
			if !before[v] {
				state.model.ofOptimizer[v] = true
			}
		}
	}()
	report := s.reportRates(rule, b, scope, loss)
	rule.UpdateGraphWithGradients(scope, gradients, loss.DType())
	if s.rule == nil {
		state.model.start()
	}
	report()
}

func (s *Stepper) reportRates(rule *optim.Optimizer, b *Builder, scope *model.Scope, loss *graph.Node) (report func()) {
	if !s.rates {
		return func() {}
	}
	after := rule.Rates(scope, loss)
	return func() {
		rates := after()
		for _, group := range slices.Sorted(maps.Keys(rates)) {
			b.number(loop.Metrics, strings.TrimSuffix("learning_rate_"+group, "_"), rates[group])
		}
	}
}

// refuseEarlierUse panics if the loss uses a parameter's value of before its SetNodeValue, which would not be trained.
func refuseEarlierUse(loss *graph.Node, v *model.Variable) {
	value, before := v.NodeValue(loss.Graph()), loss.Graph().GetParameterByName(v.Path())
	if before != nil && before != value && autodiff.Bypasses(loss, before, value) {
		panic(fmt.Errorf("the loss uses the value that %s had before its SetNodeValue, so that this use would not be trained: set the value before its first use in the step, "+
			"as a bounded weight, or set it in a step of its own after the training step", v.Path()))
	}
}

func (b *Builder) untrained(loss *graph.Node) map[*graph.Node]bool {
	values := make([]*graph.Node, len(b.inferred))
	for i, v := range b.inferred {
		values[i] = v.NodeValue(loss.Graph())
	}
	return autodiff.Unreached(loss, values...)
}

const globalStep = model.RootScopePath + optimizer.GlobalStepVariableName
