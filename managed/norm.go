package managed

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/autodiff"
)

type inStep struct{ *Builder }

func (b inStep) FullPrecision(x *graph.Node, build func(x *graph.Node) *graph.Node) *graph.Node {
	return FullPrecision(b.scope, x, build)
}

func (b inStep) Examples() *graph.Node { return b.padding() }

func (b inStep) Freezes(path string, shape shapes.Shape) bool {
	return b.optimizer != nil && b.Training() && b.optimizer.Freezes(path, shape)
}

func (b inStep) Ended() error {
	if b.building == nil {
		return nil
	}
	return context.Cause(b.building)
}

func (b inStep) Normalised(count *model.Variable) { b.norms = append(b.norms, count) }

func (b *Builder) keepStatistics(loss *graph.Node) {
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
		if !known {
			trains = b.only == nil || b.only(v.Path())
		}
		for _, name := range []string{"mean", "variance", batchNormCount} {
			if s := store.GetVariable(model.JoinPath(dir, name)); !trains && s != nil && s.ChangedInGraph(b.graph) {
				s.SetNodeValue(b.graph.GetParameterByName(s.Path()))
			}
		}
	}
}

func (b *Builder) padding() *graph.Node {
	if i := slices.Index(b.names, data.Mask); i >= 0 && b.batch[i].DType() == dtypes.Bool && b.batch[i].Rank() == 1 {
		return b.batch[i]
	}
	return nil
}

const batchNormCount = "avg_weight"

// checkBatchNorm: GoMLX's layer averages the padding.
func (b *Builder) checkBatchNorm() {
	if b.padding() == nil || !b.Training() {
		return
	}
	for _, v := range b.changedNorms() {
		if !slices.Contains(b.norms, v) {
			panic(fmt.Errorf("norm.BatchNorm in %s: the batch is padded, and the layer's means would count the padding: expected nn.BatchNorm, which leaves the padding out", v.Scope()))
		}
	}
}

func (b *Builder) changedNorms() (counts []*model.Variable) {
	for v := range b.scope.Store().IterVariables() {
		if _, name := model.SplitPath(v.Path()); name == batchNormCount && v.ChangedInGraph(b.graph) {
			counts = append(counts, v)
		}
	}
	return counts
}
