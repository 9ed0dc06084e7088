package managed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/xla/ops"
)

// ClipByExample returns the examples' losses, [batch], and clips each example's gradient over all updated variables
// to norm limit (Abadi et al. 2016). [Builder.Loss] of them trains with the mean gradient.
//
// The fields' first axis is the batch. loss is called once, with fields of shape [1, …], and returns a scalar. Batch
// normalization in it is an error.
func (b *Builder) ClipByExample(limit float64, fields []*graph.Node, loss func(example []*graph.Node) *graph.Node) *graph.Node {
	if !(limit > 0) || loss == nil {
		panic(fmt.Errorf("ClipByExample: the limit is %g, expected a positive number, and a function of the loss", limit))
	}
	_, outs := ops.Scan(nil, fields, func(_, at []*graph.Node) (next, out []*graph.Node) {
		example := make([]*graph.Node, len(at))
		for i, x := range at {
			example[i] = graph.ExpandAxes(x, 0)
		}
		before := b.changedNorms()
		l := loss(example)
		for _, v := range b.changedNorms() {
			if !slices.Contains(before, v) {
				panic(fmt.Errorf("ClipByExample: the batch normalization in %s would normalize each example by itself: expected nn.GroupNorm or nn.LayerNorm, or frozen averages (optim.Frozen)", v.Scope()))
			}
		}
		if l == nil || l.Rank() != 0 || !l.DType().IsFloat() {
			panic(fmt.Errorf("ClipByExample: the loss of an example is %s, expected a scalar of a floating-point type", autodiff.ShapeText(l)))
		}
		var wrt []*graph.Node
		for v := range b.scope.Store().IterVariables() {
			if v.Trainable && v.InUseByGraph(b.graph) && (b.only == nil || b.only(v.Path())) {
				wrt = append(wrt, v.NodeValue(b.graph))
			}
		}
		if len(wrt) == 0 {
			panic(errors.New("ClipByExample: the loss uses no trainable variable that the step updates"))
		}
		sum := graph.ScalarZero(b.graph, l.DType())
		for _, g := range autodiff.Gradient(l, wrt...) {
			sum = graph.Add(sum, graph.ConvertDType(graph.ReduceAllSum(graph.Square(g)), l.DType()))
		}
		return nil, []*graph.Node{l, sum}
	})
	losses, norms := outs[0], graph.Sqrt(graph.StopGradient(outs[1]))
	most := graph.Scalar(b.graph, losses.DType(), limit)
	share := graph.Where(graph.LessThan(norms, most), graph.OnesLike(norms), graph.Div(most, norms))
	clipped := graph.Mul(losses, share)
	return graph.Add(graph.StopGradient(losses), graph.Sub(clipped, graph.StopGradient(clipped)))
}
