package optim

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// GoMLX makes an [Optimizer] of one of GoMLX's, with its own rule and rate. It must take gradients, as all of GoMLX's
// package optimizer do: else the training step is an error. Of nil it is nil.
func GoMLX(o optimizer.Interface) *Optimizer {
	if o == nil {
		return nil
	}
	return &Optimizer{other: o}
}

// gradientOptimizer is an optimizer that takes gradients. The other way in, by the loss, would let GoMLX differentiate,
// past internal/autodiff.
type gradientOptimizer interface {
	UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType)
}

// updateOther adds the update of one of GoMLX's optimizers to the graph.
func (o *Optimizer) updateOther(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	by, ok := o.other.(gradientOptimizer)
	check(ok, "optimizer %v cannot be given gradients (it needs UpdateGraphWithGradients, as all of GoMLX's have)", o)
	if scope.Scope() != model.RootScopePath {
		g := gradients[0].Graph()
		defer apart(scope, g, trained(scope, g))()
	}
	by.UpdateGraphWithGradients(scope, gradients, lossDType)
}

// apart lets one of GoMLX's optimizers work in a scope. They train what is below their scope, and count their steps at
// the root. So for the time of the rule the variables have stand-ins whose paths lead into the scope and out again
// ("/generator/../dense/weights"): there the optimizer looks, and what it keeps of each has the name that it has
// without a scope, since paths are made plain. The scope's own count of steps stands in for the root's. What is
// returned takes the new values over and ends it.
func apart(scope *model.Scope, g *graph.Graph, trained []*model.Variable) (together func()) {
	var ends []func()
	for _, v := range trained {
		ends = append(ends, standIn(g, scope.Store(), scope.Scope()+"/.."+v.Path(), v))
		v.Trainable = false // it may be below the scope itself
		ends = append(ends, func() { v.Trainable = true })
	}
	steps := scope.VariableWithValue(optimizer.GlobalStepVariableName, int64(0)).SetTrainable(false)
	ends = append(ends, standIn(g, scope.Store(), model.RootScopePath+optimizer.GlobalStepVariableName, steps))
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// standIn has the variable of a path be another one, in the graph, until end. GoMLX makes a parameter for each variable
// that a graph uses, unless it is a constant; so it is one first, of a single number.
func standIn(g *graph.Graph, store *model.Store, path string, of *model.Variable) (end func()) {
	if there := store.GetVariable(path); there != nil {
		was := there.NodeValue(g)
		there.SetNodeValue(of.NodeValue(g))
		return func() {
			of.SetNodeValue(there.NodeValue(g))
			there.SetNodeValue(was)
		}
	}
	v := store.VariableWithValue(path, int64(0)).SetTrainable(of.Trainable)
	store.WithVariableAsConst(true)
	v.NodeValue(g)
	store.WithVariableAsConst(false)
	v.SetNodeValue(of.NodeValue(g))
	t := tensors.FromShape(of.Shape())
	try(v.SetValuePreservingOld(t))
	t.FinalizeLocal()
	return func() {
		of.SetNodeValue(v.NodeValue(g))
		try(store.DeleteVariable(path))
	}
}

func try(err error) {
	if err != nil {
		panic(fmt.Errorf("optim: %w", err))
	}
}
