package managed

import (
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/optim"
)

// ruleOf is the optimizer that the step updates a state with.
func (s *Stepper) ruleOf(state *State) Optimizer {
	if s.rule != nil {
		return s.rule
	}
	return state.model.optimizer
}

// chained is the optimizer of package optim that a rule is, or has inside.
func chained(rule Optimizer) (optim.Chained, bool) {
	o, ok := asGiven(rule).(optim.Chained)
	return o, ok
}

// update adds the gradient and the optimizer's rule to the graph.
func (s *Stepper) update(state *State, b *Builder, loss *Node) {
	rule, scope := s.ruleOf(state), state.model.store.RootScope()
	if s.rule != nil {
		state.settings.rules[s.scope] = rule
	}
	if rule == nil {
		panic(errors.New("the state has no optimizer: give managed.New a WithOptimizer"))
	}
	by, ok := rule.(gradientOptimizer)
	if !ok {
		panic(fmt.Errorf("optimizer %T cannot be given gradients (it needs UpdateGraphWithGradients, as all of GoMLX's have)", rule))
	}
	var trained []*variable
	var parameters []*Node
	b.keepStatistics(loss)
	if s.scope != "" {
		n := stepsBy(scope)
		state.model.ofOptimizer[n] = true
		n.SetNodeValue(graph.AddScalar(n.NodeValue(loss.Graph()), 1))
	}
	var left []string // out by TrainOnly
	before := map[*variable]bool{}
	for v := range state.model.store.IterVariables() {
		before[v] = true
		switch {
		case !v.Trainable || !v.InUseByGraph(loss.Graph()):
		case s.only != nil && !s.only(v.Path()):
			left = append(left, v.Path())
			v.Trainable = false // optimizers look for themselves which variables the gradients are of
			defer func() { v.Trainable = true }()
		default:
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
	gradients := autodiff.Gradient(loss, parameters...)
	defer func() { // also after a panic: the next build finds the variables there
		for v := range state.model.store.IterVariables() {
			if !before[v] {
				state.model.ofOptimizer[v] = true
			}
		}
	}()
	if s.scope != "" {
		scope = scope.At("%s", s.scope)
		if _, ours := chained(rule); !ours { // optim's train from any scope all that the graph uses
			defer state.model.apart(scope, loss.Graph(), trained)()
		}
	}
	report := s.rateOf(rule, b, scope, loss)
	by.UpdateGraphWithGradients(scope, gradients, loss.DType())
	report()
}

// apart lets one of GoMLX's optimizers work in a scope. They train what is below their scope, and count their steps at
// the root. So for the time of the rule the variables have stand-ins whose paths lead into the scope and out again
// ("/generator/../dense/weights"): there the optimizer looks, and what it keeps of each has the name that it has
// without a scope, since paths are made plain. The scope's own count of steps stands in for the root's. What is given
// back takes the new values over and ends it.
func (d *definition) apart(scope *Scope, g *graph.Graph, trained []*variable) (together func()) {
	var ends []func()
	for _, v := range trained {
		ends = append(ends, d.standIn(g, scope.Scope()+"/.."+v.Path(), v))
		v.Trainable = false // it may be below the scope itself
		ends = append(ends, func() { v.Trainable = true })
	}
	steps := scope.VariableWithValue(optimizer.GlobalStepVariableName, int64(0)).SetTrainable(false)
	ends = append(ends, d.standIn(g, globalStep, steps))
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// globalStep is the full name of the variable in which GoMLX's optimizers count the steps of a store.
const globalStep = model.RootScopePath + optimizer.GlobalStepVariableName

// standIn has the variable of a path be another one, in the graph, until end. GoMLX makes a parameter for each variable
// that a graph uses, unless it is a constant; so it is one first, of a single number.
func (d *definition) standIn(g *graph.Graph, path string, of *variable) (end func()) {
	if there := d.store.GetVariable(path); there != nil {
		was := there.NodeValue(g)
		there.SetNodeValue(of.NodeValue(g))
		return func() {
			of.SetNodeValue(there.NodeValue(g))
			there.SetNodeValue(was)
		}
	}
	v := d.store.VariableWithValue(path, int64(0)).SetTrainable(of.Trainable)
	d.store.WithVariableAsConst(true)
	v.NodeValue(g)
	d.store.WithVariableAsConst(false)
	v.SetNodeValue(of.NodeValue(g))
	t := tensors.FromShape(of.Shape())
	must(v.SetValuePreservingOld(t))
	t.FinalizeLocal()
	return func() {
		of.SetNodeValue(v.NodeValue(g))
		must(d.store.DeleteVariable(path))
	}
}
