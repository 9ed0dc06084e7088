package managed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/metrics"
)

// Loss reports a floating-point loss, averaged without padding unless scalar. A training step minimizes the sum of its
// losses. avg_<name> of [RunningAverages] weights batches by their examples, as Keras.
func (b *Builder) Loss(name string, v *graph.Node) {
	if !v.DType().IsFloat() {
		panic(fmt.Errorf("loss %q has dtype %s, expected a floating-point one", name, v.DType()))
	}
	v = b.mean(name, b.ToOutputType(v))
	b.number(loop.Losses, name, v)
	if average := "avg_" + name; b.averages && !b.reported(loop.Stateful, average) {
		b.track(average, metrics.Mean(), b.count(), v)
	}
}

// Metric reports a number of this batch, averaged unless scalar, as float32, which rounds integers above 16,777,216;
// [Builder.Output] keeps the dtype.
func (b *Builder) Metric(name string, v *graph.Node) {
	if !v.DType().IsFloat() {
		v = graph.ConvertDType(v, dtypes.Float32)
	}
	v = b.ToOutputType(v)
	b.number(loop.Metrics, name, graph.StopGradient(b.mean(name, v)))
}

// Track reports a metric over all batches since the last [Reset] or the evaluation's start. The state keeps its
// accumulators, separate for training and test steps. weights are per example, nil for 1 each; padding is excluded. On
// a padded batch, an input from the batch without a row per example is [ErrPadded], unless the function asked for the
// mask. Several values are logged as name/value, numbers as [Builder.Metric], arrays as [Builder.Output].
func (b *Builder) Track(name string, m metrics.Metric, weights *graph.Node, inputs ...*graph.Node) {
	if mask := b.mask(); mask != nil {
		rows := false
		for _, v := range inputs {
			has := !v.IsScalar() && v.Shape().Dimensions[0] == mask.Shape().Dimensions[0]
			if !has && !b.masked && b.ofBatch(v) {
				panic(padded(name, v, mask))
			}
			rows = rows || has
		}
		switch {
		case rows && weights == nil:
			weights = mask
		case rows:
			weights = graph.Where(mask, weights, graph.ZerosLike(weights))
		}
	}
	b.track(name, m, weights, inputs...)
}

func (b *Builder) track(name string, m metrics.Metric, weights *graph.Node, inputs ...*graph.Node) {
	scope := b.scope.Store().Scope("/metrics/" + b.kind + "/" + name)
	list := m.Accumulators()
	slots, acc := make([]*model.Variable, len(list)), make([]*graph.Node, len(list))
	for i, a := range list {
		initial, err := filled(a)
		if err != nil {
			panic(fmt.Errorf("metric %q: accumulator %q: %w", name, a.Name, err))
		}
		slots[i] = scope.VariableWithValue(a.Name, initial).SetTrainable(false)
		acc[i] = slots[i].NodeValue(b.graph)
		b.resets = append(b.resets, reset{slots[i], a})
	}
	inputs = slices.Clone(inputs)
	for i, v := range inputs {
		inputs[i] = graph.StopGradient(v)
	}
	acc = m.Update(acc, weights, inputs...)
	for i, v := range slots {
		v.SetNodeValue(acc[i])
	}
	for _, v := range m.Compute(acc) {
		full := name
		if v.Name != "" {
			full += "/" + v.Name
		}
		if v.Node.IsScalar() {
			b.number(loop.Stateful, full, v.Node)
		} else {
			b.whole(loop.Stateful, full, v.Node)
		}
	}
}

// Mean reports the mean over all examples since the last reset. A scalar is weighted by the batch's examples without
// padding.
func (b *Builder) Mean(name string, v *graph.Node) {
	if v.IsScalar() {
		b.track(name, metrics.Mean(), b.count(), b.mean(name, v))
		return
	}
	b.Track(name, metrics.Mean(), nil, v)
}

// ErrPadded reports that a value of the whole padded batch would include the padding.
var ErrPadded = errors.New("the batch is padded")

// Output reports an array, like a prediction per example; it stays on the device until [Array] reads it. A step with
// outputs runs singly, not in blocks.
func (b *Builder) Output(name string, v *graph.Node) { b.whole(loop.Outputs, name, v) }

// AddLoss reports a loss from within a model, like a penalty, under a unique name, with a suffix _1, _2, … in repeated
// layers. GoMLX's AddRegularizationLoss is reported as "aux_loss", its AddMainLoss as "main_loss".
func AddLoss(name string, v *graph.Node) {
	b := builderOf(v, "AddLoss")
	b.Loss(b.unique(loop.Losses, name), v)
}

// AddMetric reports a metric as [AddLoss], with [RunningAverages] also its mean.
func AddMetric(name string, v *graph.Node) {
	b := builderOf(v, "AddMetric")
	name = b.unique(loop.Metrics, name)
	b.Metric(name, v)
	if b.averages {
		b.Mean("avg_"+name, v)
	}
}

const builderParam = "/lazo.builder"

func builderOf(v *graph.Node, function string) *Builder {
	param, _ := model.GetGraphParam(v, builderParam)
	b, ok := param.(*Builder)
	if !ok {
		panic(fmt.Errorf("managed.%s works only inside the build function of a step", function))
	}
	return b
}

func (b *Builder) unique(c loop.Collection, name string) string {
	full := name
	for i := 1; b.reported(c, full); i++ {
		full = fmt.Sprintf("%s_%d", name, i)
	}
	return full
}

func (b *Builder) reported(c loop.Collection, name string) bool {
	same := func(l logged) bool { return l.collection == c && l.name == name }
	return slices.ContainsFunc(b.logged, same) || slices.ContainsFunc(b.wholes, same)
}

func (b *Builder) number(c loop.Collection, name string, v *graph.Node) {
	if b.outputsAlone {
		return
	}
	b.once(c, name)
	b.logged = append(b.logged, logged{c, name, v})
}

func (b *Builder) whole(c loop.Collection, name string, v *graph.Node) {
	b.once(c, name)
	b.wholes = append(b.wholes, logged{c, name, v})
}

func (b *Builder) once(c loop.Collection, name string) {
	if b.reported(c, name) {
		panic(fmt.Errorf("%s.%s is reported twice", c, name))
	}
}

func (b *Builder) mean(name string, v *graph.Node) *graph.Node {
	if v.Shape().IsScalar() && b.masked {
		return v
	}
	mask := b.mask()
	switch {
	case mask == nil && v.Shape().IsScalar():
		return v
	case mask == nil:
		return graph.ReduceAllMean(v)
	case v.Shape().IsScalar() && !b.ofBatch(v):
		return v
	case v.Shape().Rank() == 0 || v.Shape().Dimensions[0] != mask.Shape().Dimensions[0]:
		panic(padded(name, v, mask))
	}
	for v.Rank() > 1 {
		v = graph.ReduceMean(v, -1)
	}
	v = graph.Where(mask, v, graph.ZerosLike(v)) // values of padding may be infinite
	count := graph.ReduceAllSum(graph.ConvertDType(mask, v.DType()))
	return graph.Div(graph.ReduceAllSum(v), graph.MaxScalar(count, 1))
}

func padded(name string, v, mask *graph.Node) error {
	return fmt.Errorf("%q is %s, but %w: report a value for each of its %d examples, whose mean leaves the padding out, or use the builder's Mask",
		name, v.Shape(), ErrPadded, mask.Shape().Dimensions[0])
}

// withFunctions may use nodes that are not among their inputs.
var withFunctions = []graph.NodeType{graph.NodeTypeCall, graph.NodeTypeWhile, graph.NodeTypeIf}

func (b *Builder) ofBatch(v *graph.Node) bool {
	seen := map[*graph.Node]bool{}
	for list := []*graph.Node{v}; len(list) > 0; {
		v, list = list[len(list)-1], list[:len(list)-1]
		switch {
		case slices.Contains(b.given, v), slices.Contains(withFunctions, v.Type()):
			return true
		case !seen[v]:
			seen[v] = true
			list = append(list, v.Inputs()...)
		}
	}
	return false
}

func (b *Builder) finish() {
	b.modelLosses()
	b.checkBatchNorm()
}

func (b *Builder) modelLosses() {
	if v := train.GetMainLoss(b.graph); v != nil {
		b.Loss(b.unique(loop.Losses, "main_loss"), v)
	}
	if v := train.GetRegularizationLoss(b.graph); v != nil {
		b.Loss(b.unique(loop.Losses, "aux_loss"), v)
	}
}

func (b *Builder) loss() *graph.Node {
	var sum *graph.Node
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

func (b *Builder) pack() *graph.Node {
	if len(b.logged) == 0 {
		return nil
	}
	parts := make([]*graph.Node, len(b.logged))
	for i, l := range b.logged {
		parts[i] = graph.ReshapeWithShape(graph.ConvertDType(l.node, packedDType), shapes.Make(packedDType, 1))
	}
	return graph.Concatenate(parts, 0)
}

const packedDType = dtypes.Float32
