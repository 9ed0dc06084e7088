package optim

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// GoMLX makes an [Optimizer] from a GoMLX optimizer, with its own rule and rate. It must take gradients, as those of
// GoMLX's package optimizer, else the training step is an error. GoMLX(nil) is nil.
//
// GoMLX's Adams correct a parameter that joins late by the count of all steps; [Adam] counts per parameter.
func GoMLX(o optimizer.Interface) *Optimizer {
	if o == nil {
		return nil
	}
	return &Optimizer{other: o}
}

// With the loss, GoMLX would differentiate without internal/autodiff.
type gradientOptimizer interface {
	UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType)
}

func (o *Optimizer) updateOther(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	by, ok := o.other.(gradientOptimizer)
	check(ok, "optimizer %v cannot be given gradients (it needs UpdateGraphWithGradients, as all of GoMLX's have)", o)
	if scope.Scope() != model.RootScopePath {
		g := gradients[0].Graph()
		defer apart(scope, g, trained(scope, g))()
	}
	by.UpdateGraphWithGradients(scope, gradients, lossDType)
}

// apart lets a GoMLX optimizer work in a scope. GoMLX trains the variables below its scope and counts steps at the
// root. So each variable has a stand-in whose path leads into the scope and out again
// ("/generator/../dense/weights"), and the scope's count replaces the root's, until together.
func apart(scope *model.Scope, g *graph.Graph, trained []*model.Variable) (together func()) {
	var ends []func()
	for _, v := range trained {
		ends = append(ends, standIn(g, scope.Store(), scope.Scope()+"/.."+v.Path(), v))
		v.Trainable = false // it may be below the scope
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

// standIn makes a path refer to another variable in this graph, until end. It is a constant first: GoMLX makes a graph
// parameter for each other used variable.
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
