package managed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/awaited"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// Build is the function of a step: it builds the graph from the batch to what the step reports.
type Build func(b *Builder)

// Builder is what a [Build] function builds on: the model's variables, the fields of the batch, and the names under
// which it reports.
type Builder struct {
	graph  *graph.Graph
	scope  *model.Scope
	names  []string
	batch  []*graph.Node
	sets   []strategies.Slot // those on the device that the batch is of
	kind   string            // "train" or "test"
	logged []logged          // numbers, packed into one array
	wholes []logged          // arrays
	resets []reset
	// averages asks for a running mean of each loss.
	averages bool
	// outputsAlone leaves the numbers out that are reported.
	outputsAlone bool
	masked       bool              // the user has seen the mask
	given        []*graph.Node     // the batch as it came in
	norms        []*model.Variable // the counts of batch normalisations that leave padding out
	samples      *graph.Node
	casting      *casting // nil without a policy
	steps        *graph.Node
	awaiting     *awaited.Values
	equal        []*model.Variable // the packs whose scalars it takes to be equal
	// optimizer is that of a train step.
	optimizer *optim.Optimizer
	only      func(name string) bool // what a train step updates; nil in other steps
	trained   []*model.Variable      // the parameters that it updates
}

// Graph is the graph being built.
func (b *Builder) Graph() *graph.Graph { return b.graph }

// Scope is the root of the model's variables, to be given to layers. It is a new one each time that the step is built:
// in one build, a second In of one name is a mistake that GoMLX tells of; what is shared is said by Shared or At.
func (b *Builder) Scope() *model.Scope { return b.scope }

// again gives a body that package ops calls more than once, as under Eager, another root: see [graphs.AgainParam].
func (b *Builder) again() (done func()) {
	first := b.scope
	b.scope = first.Store().RootScope()
	return func() { b.scope = first }
}

// Training tells whether the step trains, as layers such as dropout ask.
func (b *Builder) Training() bool { return b.scope.IsTraining(b.graph) }

// Fields are the names of the batch's fields.
func (b *Builder) Fields() []string { return slices.Clone(b.names) }

// Field is a field of the batch by its name ("x", "y"). It panics where the batch has no such field.
func (b *Builder) Field(name string) *graph.Node {
	i := slices.Index(b.names, name)
	if i < 0 {
		panic(fmt.Errorf("the batch has no field %q; it has: %s", name, cmp.Or(strings.Join(b.names, ", "), "none")))
	}
	b.masked = b.masked || name == data.Mask
	return b.batch[i]
}

// Mask tells which examples of the batch count, a bool for each, where the batch was padded (see [data.Pad]); nil if
// all do.
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
		panic(fmt.Errorf("the batch's field %q is %s, but a field of that name says which examples of a padded batch count, a bool for each: give it another name",
			data.Mask, v.Shape()))
	}
	return v
}

// Steps is how many training steps the state has made before this one, an int64: those that its own optimizer made,
// and those of steps with [WithStepOptimizer]. Counted in the state, it is right in blocks of steps and in a run
// that goes on from a checkpoint. Ciclo hands the loop's time to each step; a step of ours sees what the state has
// been through.
func (b *Builder) Steps() *graph.Node {
	if b.steps == nil {
		own := optimizer.GetGlobalStepVar(b.scope).NodeValue(b.graph)
		b.steps = graph.Add(own, stepsBy(b.scope).NodeValue(b.graph))
	}
	return b.steps
}

// stepsBy counts the training steps with [WithStepOptimizer], whose optimizers each count their own.
func stepsBy(scope *model.Scope) *model.Variable {
	return scope.Store().RootScope().VariableWithValue(stepsByName, int64(0)).SetTrainable(false)
}

const stepsByName = "steps_by"

// Samples is how many examples the state has been trained on before this step, an int64; those of padding do not count.
// It is counted from the first training step that asks.
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

// examples is how many a batch has.
func examples(batch []*graph.Node) int {
	for _, field := range batch {
		if field.Rank() > 0 {
			return field.Shape().Dimensions[0]
		}
	}
	return 1
}
