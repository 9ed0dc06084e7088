package managed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/loop"
)

// Build is the function of a step: it builds the graph from the batch to what the step reports.
type Build func(b *Builder)

// Builder is what a [Build] function builds on: the model's variables, the fields of the batch, and the names under
// which it reports.
type Builder struct {
	graph  *graph.Graph
	vars   *Vars
	names  []string
	batch  []*Node
	logged []logged
}

type logged struct {
	collection loop.Collection
	name       string
	node       *Node
}

// Graph is the graph being built.
func (b *Builder) Graph() *graph.Graph { return b.graph }

// Vars are the model's variables, to be given to layers.
func (b *Builder) Vars() *Vars { return b.vars }

// Training tells whether the step trains, as layers such as dropout ask.
func (b *Builder) Training() bool { return b.vars.IsTraining(b.graph) }

// Node is a field of the batch by its name ("x", "y"). It panics where the batch has no such field.
func (b *Builder) Node(name string) *Node {
	i := slices.Index(b.names, name)
	if i < 0 {
		panic(fmt.Errorf("the batch has no field %q; it has: %s", name, strings.Join(b.names, ", ")))
	}
	return b.batch[i]
}

// Loss reports a loss: a floating-point value; if it is not a scalar, its mean is taken. A train step minimises the
// sum of all its losses.
func (b *Builder) Loss(name string, v *Node) {
	if !v.DType().IsFloat() {
		panic(fmt.Errorf("loss %q has dtype %s, expected a floating-point one", name, v.DType()))
	}
	b.report(loop.Losses, name, v)
}

// Metric reports a number to be logged; if it is not a scalar, its mean is taken.
func (b *Builder) Metric(name string, v *Node) {
	if !v.DType().IsFloat() {
		v = graph.ConvertDType(v, dtypes.Float32)
	}
	b.report(loop.Metrics, name, graph.StopGradient(v))
}

func (b *Builder) report(c loop.Collection, name string, v *Node) {
	if slices.ContainsFunc(b.logged, func(l logged) bool { return l.collection == c && l.name == name }) {
		panic(fmt.Errorf("%s.%s is reported twice", c, name))
	}
	if !v.Shape().IsScalar() {
		v = graph.ReduceAllMean(v)
	}
	b.logged = append(b.logged, logged{c, name, v})
}

// loss is the sum of all losses.
func (b *Builder) loss() *Node {
	var sum *Node
	for _, l := range b.logged {
		switch {
		case l.collection != loop.Losses:
		case sum == nil:
			sum = l.node
		default:
			sum = graph.Add(sum, graph.ConvertDType(l.node, sum.DType()))
		}
	}
	if sum == nil {
		panic(fmt.Errorf("the train step reports no loss: call the builder's Loss, or use TestStep for a step that does not train"))
	}
	return sum
}

// pack puts all logged numbers into one array, so that they leave the device in one copy. Nil if there are none.
func (b *Builder) pack() *Node {
	if len(b.logged) == 0 {
		return nil
	}
	parts := make([]*Node, len(b.logged))
	for i, l := range b.logged {
		parts[i] = graph.ReshapeWithShape(graph.ConvertDType(l.node, packedDType), shapes.Make(packedDType, 1))
	}
	return graph.Concatenate(parts, 0)
}
