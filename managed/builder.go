package managed

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/awaited"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// Build builds a step's graph.
type Build func(b *Builder)

// Builder has the model's variables and the batch's fields for a [Build], and takes the values to report.
type Builder struct {
	graph        *graph.Graph
	scope        *model.Scope
	names        []string
	batch        []*graph.Node
	sets         []strategies.Slot
	kind         string
	building     context.Context
	logged       []logged
	wholes       []logged
	resets       []reset
	averages     bool
	outputsAlone bool
	masked       bool
	given        []*graph.Node
	norms        []*model.Variable
	samples      *graph.Node
	casting      *casting
	steps        *graph.Node
	awaiting     *awaited.Values
	equal        []*model.Variable
	optimizer    *optim.Optimizer
	only         func(name string) bool
	trained      []*model.Variable
	inferred     []*model.Variable // first used in Inference
}

// Graph returns the graph being built.
func (b *Builder) Graph() *graph.Graph { return b.graph }

// Scope returns the variables' root scope, new in each build. A second In of one name is an error of GoMLX: share
// variables by Shared or At.
func (b *Builder) Scope() *model.Scope { return b.scope }

func (b *Builder) again() (done func()) {
	first := b.scope
	b.scope = first.Store().RootScope()
	return func() { b.scope = first }
}

// Training reports whether the step trains.
func (b *Builder) Training() bool { return b.scope.IsTraining(b.graph) }

// Inference calls build with Training false, for an untrained part like a teacher: its layers have no dropout, and
// normalize by their averages. Stop the gradient of its result ([graph.StopGradient]): variables first used in build
// without a gradient are not updated, not even by weight decay.
func (b *Builder) Inference(build func()) {
	store, training := b.scope.Store(), b.Training()
	used := map[*model.Variable]bool{}
	for v := range store.IterVariables() {
		used[v] = v.InUseByGraph(b.graph)
	}
	store.SetTraining(b.graph, false)
	defer store.SetTraining(b.graph, training)
	build()
	for v := range store.IterVariables() {
		if v.Trainable && !used[v] && v.InUseByGraph(b.graph) {
			b.inferred = append(b.inferred, v)
		}
	}
}

// Fields returns the fields' names.
func (b *Builder) Fields() []string { return slices.Clone(b.names) }

// Field returns the batch's field of this name ("x", "y"), and panics if there is none.
func (b *Builder) Field(name string) *graph.Node {
	i := slices.Index(b.names, name)
	if i < 0 {
		panic(fmt.Errorf("the batch has no field %s; it has: %s", listed.Quoted(name), cmp.Or(listed.Joined(b.names), "none")))
	}
	b.masked = b.masked || name == data.Mask
	return b.batch[i]
}

// Mask is false for each padding example ([data.Pad]), or nil if the batch has no mask.
func (b *Builder) Mask() *graph.Node {
	b.masked = true
	return b.mask()
}

func (b *Builder) mask() *graph.Node {
	i := slices.Index(b.names, data.Mask)
	if i < 0 {
		return nil
	}
	v := b.batch[i]
	if v.DType() != dtypes.Bool || v.Rank() != 1 {
		panic(fmt.Errorf("the batch's field %q is %s, but a field of that name must have a bool for each example of a padded batch, true if it counts: give the field another name",
			data.Mask, v.Shape()))
	}
	return v
}

// Steps is the number of earlier training steps, as int64, including those with [WithStepOptimizer].
func (b *Builder) Steps() *graph.Node {
	if b.steps == nil {
		own := optimizer.GetGlobalStepVar(b.scope).NodeValue(b.graph)
		b.steps = graph.Add(own, stepsBy(b.scope).NodeValue(b.graph))
	}
	return b.steps
}

func stepsBy(scope *model.Scope) *model.Variable {
	return scope.Store().RootScope().VariableWithValue(stepsByName, int64(0)).SetTrainable(false)
}

const stepsByName = "steps_by"

// Samples is the number of earlier training examples, without padding, as int64, from the first training step that
// calls it.
func (b *Builder) Samples() *graph.Node {
	v := b.scope.VariableWithValue("samples", int64(0)).SetTrainable(false)
	n := v.NodeValue(b.graph)
	if b.samples == nil && b.Training() && len(b.batch) > 0 {
		v.SetNodeValue(graph.Add(n, b.count()))
	}
	if b.samples == nil {
		b.samples = n
	}
	return b.samples
}

func (b *Builder) count() *graph.Node {
	if mask := b.mask(); mask != nil {
		return graph.ReduceAllSum(graph.ConvertDType(mask, dtypes.Int64))
	}
	return graph.Scalar(b.graph, dtypes.Int64, examples(b.batch))
}

func examples(batch []*graph.Node) int {
	for _, field := range batch {
		if field.Rank() > 0 {
			return field.Shape().Dimensions[0]
		}
	}
	return 1
}
