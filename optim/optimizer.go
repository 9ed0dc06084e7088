package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/internal/autodiff"
)

// Optimizer updates parameters with a chain of transformations of their gradients:
//
//	parameter = parameter - learning rate × update
//
// It has no state; one optimizer can serve several states.
type Optimizer struct {
	rate  float64
	chain Chain
	other optimizer.Interface
}

var _ optimizer.Interface = (*Optimizer)(nil)

// New makes an optimizer from a learning rate and a chain; an empty chain is gradient descent. An invalid rate or
// setting is an error of the training step.
//
// The host can change the rate without compiling again (managed.State.SetLearningRate). [ScaleBySchedule] multiplies
// it.
func New(rate float64, chain ...Transformation) *Optimizer {
	return &Optimizer{rate: rate, chain: slices.Clone(chain)}
}

// UpdateGraph differentiates a scalar loss and adds the update to the graph, for GoMLX's trainer.
func (o *Optimizer) UpdateGraph(scope *model.Scope, g *graph.Graph, loss *graph.Node) {
	if !loss.Shape().IsScalar() {
		panic(fmt.Errorf("optim: the loss has shape %s, expected a scalar", loss.Shape()))
	}
	var values []*graph.Node
	for _, v := range trained(scope, g) {
		values = append(values, v.NodeValue(g))
	}
	if len(values) == 0 {
		panic(errNothing)
	}
	o.UpdateGraphWithGradients(scope, autodiff.Gradient(o.ScaleLoss(scope, loss), values...), loss.DType())
}

var errNothing = errors.New("optim: the graph uses no trainable variable: nothing to train")

// UpdateGraphWithGradients adds one step to the graph. gradients are those of the graph's trainable variables, in the
// store's order. Arithmetic and state are in float32, or in float64 if the loss is, even for 16-bit parameters.
func (o *Optimizer) UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	if len(gradients) == 0 {
		panic(errNothing)
	}
	if o.other != nil {
		o.updateOther(scope, gradients, lossDType)
		return
	}
	g := gradients[0].Graph()
	variables := trained(scope, g)
	if len(variables) != len(gradients) {
		panic(fmt.Errorf("optim: %d gradients for %d trainable variables in use: %s", len(gradients), len(variables), names(variables)))
	}
	if rate := float64(float32(o.rate)); !(rate > 0) || math.IsInf(rate, 0) {
		panic(fmt.Errorf("optim: the learning rate is %g, expected a positive, finite number of float32", o.rate))
	}
	dtype := typeFor(lossDType)
	// GoMLX counts the batches of the whole store here.
	batches := scope.VariableWithValue(optimizer.GlobalStepVariableName, int64(0)).SetTrainable(false)
	batches.SetNodeValue(graph.AddScalar(batches.NodeValue(g), 1))
	rate := o.rateVariable(scope, dtype).NodeValue(g)
	s := newStep(scope, g, dtype)
	for i, v := range variables {
		if !v.DType().IsFloat() {
			panic(fmt.Errorf("optim: %s is %s, expected real floating-point numbers", v.Path(), v.Shape()))
		}
		p := &Parameter{variable: v, Value: graph.ConvertDType(v.NodeValue(g), dtype), Update: graph.ConvertDType(gradients[i], dtype)}
		s.parameters, s.owners[v] = append(s.parameters, p), p
	}
	s.trained = s.parameters
	o.chain.Update(s)
	s.setCounts()
	for p := range s.Parameters() {
		s.Set(p.variable, graph.ConvertDType(graph.Sub(p.Value, graph.Mul(rate, p.Update)), p.variable.DType()))
	}
	count := s.model.Store().VariableWithValue(model.JoinPath(s.scope, "updates"), int64(0)).SetTrainable(false)
	s.Set(count, graph.AddScalar(count.NodeValue(g), 1))
	for _, f := range s.after {
		f()
	}
}

func newStep(scope *model.Scope, g *graph.Graph, dtype dtypes.DType) *Step {
	return &Step{scope: scopeIn(scope), update: &update{model: scope, graph: g, dtype: dtype,
		taken:  map[string]bool{model.JoinPath(scopeIn(scope), perParameter): true},
		owners: map[*model.Variable]*Parameter{}, counts: countsIn(scope.Store()), factors: map[factor]*graph.Node{}}}
}

// Clear deletes all variables of the optimizer.
func (o *Optimizer) Clear(scope *model.Scope) error {
	if o.other != nil {
		return o.other.Clear(scope)
	}
	own := []string{scopeIn(scope) + "/", adamPath(scope.Scope(), "")}
	var err error
	for _, v := range slices.Collect(scope.Store().IterVariables()) {
		if slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(v.Path(), prefix) }) {
			err = errors.Join(err, scope.Store().DeleteVariable(v.Path()))
		}
	}
	if err != nil {
		return fmt.Errorf("optim: clear: %w", err)
	}
	return nil
}

// adamPath is the path of GoMLX's Adam. link is "" outside groups.
func adamPath(scope, link string, names ...string) string {
	return model.JoinPath(append([]string{scope, optimizer.AdamDefaultScope + strings.ReplaceAll(link, "/", "_")}, names...)...)
}

func (o *Optimizer) rateVariable(scope *model.Scope, dtype dtypes.DType) *model.Variable {
	return optimizer.LearningRateVarWithValue(scope, dtype, o.rate)
}

func typeFor(loss dtypes.DType) dtypes.DType {
	if loss == dtypes.Float64 {
		return loss
	}
	return dtypes.Float32
}

func trained(scope *model.Scope, g *graph.Graph) []*model.Variable {
	var all []*model.Variable
	for v := range scope.Store().IterVariables() {
		if v.Trainable && v.InUseByGraph(g) {
			all = append(all, v)
		}
	}
	return all
}

func names(variables []*model.Variable) []string {
	all := make([]string, len(variables))
	for i, v := range variables {
		all[i] = v.Path()
	}
	return all
}

// Scaled returns the optimizer with a [LossScale] as its first link, which it adds if missing. A GoMLX optimizer is an
// error.
func (o *Optimizer) Scaled() (*Optimizer, error) {
	if o.other != nil {
		return nil, fmt.Errorf("optim: optimizer %v cannot scale losses, expected a chain of package optim: use optim.New", o)
	}
	if o.ScalesLoss() {
		return o, nil
	}
	return New(o.rate, append(Chain{LossScale{}}, o.chain...)...), nil
}
