package managed

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/autodiff"
)

// BatchNorm is GoMLX's norm.BatchNorm over all axes but the last, [batch, …, n], with its variables and settings,
// that leaves out the examples of a padded batch that do not count ([Builder.Mask]): a training step has the numbers
// that it has of the examples alone. GoMLX's own layer is refused in a training step of a padded batch. One whose
// scale and offset the optimizer leaves as they are (optim.Frozen) stands still as a whole: it normalises by the
// averages that it has, while training too, and leaves them as they are. A step that trains neither its scale nor
// its offset, by [TrainOnly] or because the loss does not depend on them but through graph.StopGradient, leaves the
// averages as they are too, and normalises by the batch. The running averages have no start to grow out of: step n
// takes the momentum min(0.99, 1 - 1/n), where Keras and flax take 0.99 from the first step on.
func BatchNorm(scope *Scope, x *Node) *Node { return MaskedBatchNorm(scope, x, nil) }

// MaskedBatchNorm is [BatchNorm] whose training step has the numbers that it has of those places alone at which a mask
// of x's first axes is true, as bool [batch, places] for [batch, places, n]; nil for all.
func MaskedBatchNorm(scope *Scope, x, mask *Node) *Node {
	param, _ := model.GetGraphParam(x, builderParam)
	b, inStep := param.(*Builder)
	frozen := inStep && b.freezes(scope, x)
	var examples *Node
	if inStep {
		examples = b.padding()
	}
	if frozen || mask == nil && examples == nil || !scope.IsTraining(x.Graph()) {
		return norm.BatchNorm(scope, x, -1).FrozenAverages(frozen).Done()
	}
	if examples != nil && (x.Rank() < 2 || x.Shape().Dimensions[0] != examples.Shape().Dimensions[0]) {
		panic(fmt.Errorf("BatchNorm in %s: the input is %s, but the batch is padded to %d examples: expected [batch, …, n], an example in each row of the first axis",
			scope.Scope(), x.Shape(), examples.Shape().Dimensions[0]))
	}
	if mask != nil && (mask.DType() != dtypes.Bool || mask.Rank() >= x.Rank() || mask.Shape().CheckDims(x.Shape().Dimensions[:mask.Rank()]...) != nil) {
		panic(fmt.Errorf("BatchNorm in %s: the mask is %s, expected bool of the first axes of the input %s", scope.Scope(), mask.Shape(), x.Shape()))
	}
	const momentum, epsilon = 0.99, 1e-3 // GoMLX's
	scope = scope.In(norm.BatchNormalizationScopeName)
	g, width := x.Graph(), x.Shape().Dimensions[x.Rank()-1]
	of := func(name string, initial initializer.VariableInitializer, trainable bool) *variable {
		return scope.WithInitializer(initial).VariableWithShape(name, shapes.Make(x.DType(), width)).SetTrainable(trainable)
	}
	scale, offset := of("scale", initializer.One, true), of("offset", initializer.Zero, true)
	mean, variance, steps := of("mean", initializer.Zero, false), of("variance", initializer.One, false), of(batchNormCount, initializer.Zero, false)

	rows := graph.Reshape(x, -1, width)
	var counts *Node
	for _, m := range []*Node{examples, mask} {
		if m == nil {
			continue
		}
		for m.Rank() < x.Rank() {
			m = graph.ExpandAxes(m, -1)
		}
		m = graph.Reshape(graph.BroadcastToDims(m, x.Shape().Dimensions...), -1, width)
		if counts != nil {
			m = graph.LogicalAnd(counts, m)
		}
		counts = m
	}
	n := graph.MaxScalar(graph.ReduceSum(graph.ConvertDType(counts, x.DType()), 0), 1)
	meanOf := func(v *Node) *Node {
		return graph.ExpandAxes(graph.Div(graph.ReduceSum(graph.Where(counts, v, graph.ZerosLike(v)), 0), n), 0)
	}
	average := meanOf(rows)
	off := graph.Sub(rows, average)
	spread := meanOf(graph.Square(off))
	y := graph.Div(off, graph.Sqrt(graph.AddScalar(spread, epsilon)))
	y = graph.Add(graph.Mul(y, graph.ExpandAxes(scale.NodeValue(g), 0)), graph.ExpandAxes(offset.NodeValue(g), 0))

	count := graph.OnePlus(steps.NodeValue(g))
	steps.SetNodeValue(count)
	kept := graph.MinScalar(graph.OneMinus(graph.Reciprocal(count)), momentum)
	follow := func(v *variable, now *Node) {
		v.SetNodeValue(graph.Add(graph.Mul(kept, v.NodeValue(g)), graph.Mul(graph.OneMinus(kept), graph.Squeeze(now, 0))))
	}
	follow(mean, average)
	follow(variance, spread)
	if inStep {
		b.norms = append(b.norms, steps)
	}
	if l2 := model.GetParamOr(scope, regularizer.ParamL2, 0.0); l2 > 0 {
		regularizer.L2(l2)(g, scale)
	}
	return graph.Reshape(y, x.Shape().Dimensions...)
}

// freezes tells whether the optimizer leaves the parameters of a batch normalisation as they are.
func (b *Builder) freezes(scope *Scope, x *Node) bool {
	shape := shapes.Make(x.DType(), x.Shape().Dimensions[x.Rank()-1])
	return b.optimizer != nil && b.Training() && !slices.ContainsFunc([]string{"scale", "offset"}, func(name string) bool {
		return !b.optimizer.Freezes(model.JoinPath(scope.Scope(), norm.BatchNormalizationScopeName, name), shape)
	})
}

// keepStatistics has a training step leave the averages of the batch normalisations as they are whose scale and
// offset it does not train.
func (b *Builder) keepStatistics(loss *Node) {
	store := b.scope.Store()
	for v := range store.IterVariables() {
		dir, name := model.SplitPath(v.Path())
		if name != batchNormCount || !v.ChangedInGraph(b.graph) {
			continue
		}
		trains, known := false, false
		for _, name := range []string{"scale", "offset"} {
			p := store.GetVariable(model.JoinPath(dir, name))
			if p == nil || !p.InUseByGraph(b.graph) {
				continue
			}
			known = true
			trains = trains || p.Trainable && (b.only == nil || b.only(p.Path())) && autodiff.Reaches(loss, p.NodeValue(b.graph))
		}
		if !known { // it has neither
			trains = b.only == nil || b.only(v.Path())
		}
		for _, name := range []string{"mean", "variance", batchNormCount} {
			if s := store.GetVariable(model.JoinPath(dir, name)); !trains && s != nil && s.ChangedInGraph(b.graph) {
				s.SetNodeValue(b.graph.GetParameterByName(s.Path()))
			}
		}
	}
}

// padding is the mask of a padded batch; nil too where a field of that name is something else.
func (b *Builder) padding() *Node {
	if i := slices.Index(b.names, data.Mask); i >= 0 && b.batch[i].DType() == dtypes.Bool && b.batch[i].Rank() == 1 {
		return b.batch[i]
	}
	return nil
}

// batchNormCount is the variable in which GoMLX's layer counts the steps that its averages are of.
const batchNormCount = "avg_weight"

// checkBatchNorm refuses GoMLX's layer in a training step of a padded batch: it would count the padding, and say
// nothing.
func (b *Builder) checkBatchNorm() {
	if b.padding() == nil || !b.Training() {
		return
	}
	for v := range b.scope.Store().IterVariables() {
		if scope, name := model.SplitPath(v.Path()); name == batchNormCount && v.ChangedInGraph(b.graph) && !slices.Contains(b.norms, v) {
			panic(fmt.Errorf("norm.BatchNorm in %s: the batch is padded, and the layer's means would count the padding: expected managed.BatchNorm, or flaxlike.BatchNorm, which leave it out", scope))
		}
	}
}
