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

// Optimizer changes parameters by what a chain of transformations makes of their gradients:
//
//	parameter = parameter - learning rate × update
//
// It is a value without a state: all that it keeps is in variables (see the package's documentation). So one optimizer
// can serve several states.
type Optimizer struct {
	rate  float64
	chain Chain
}

// Chained is an [Optimizer], or a type that has one inside: what a trainer may ask an optimizer for.
type Chained interface {
	// ScalesLoss tells whether the chain has a [LossScale], so that the loss is to be given to its Loss.
	ScalesLoss() bool
	// Factors are what the chain multiplies the rate with: see [Optimizer.Factors].
	Factors(number func(count string) int64) (map[string]float64, error)
	// Rates are those of the next update, in its graph: see [Optimizer.Rates].
	Rates(scope *Scope, loss *Node) (map[string]*Node, error)
	// Freezes tells whether it leaves a parameter as it is, by [Frozen]: a layer may then leave what it keeps beside it.
	Freezes(name string, shape Shape) bool
}

var _ Chained = (*Optimizer)(nil)

// New makes an optimizer with a learning rate and a chain; with an empty chain it is plain gradient descent at a
// constant rate. A rate, a schedule or a setting that makes no sense is an error when the training step is compiled.
//
// The rate is held in the variable /optimizers/learning_rate, where the host can change it at any time without
// compiling anything again (managed.State.SetLearningRate). [ScaleBySchedule] multiplies it; so a new rate moves the
// whole curve.
func New(rate float64, chain ...Transformation) *Optimizer {
	return &Optimizer{rate: rate, chain: slices.Clone(chain)}
}

// UpdateGraph differentiates a scalar loss and adds the update to the graph; GoMLX's own trainer calls it.
func (o *Optimizer) UpdateGraph(scope *Scope, g *Graph, loss *Node) {
	if !loss.Shape().IsScalar() {
		panic(fmt.Errorf("optim: the loss has shape %s, expected a scalar", loss.Shape()))
	}
	var values []*Node
	for _, v := range trained(scope, g) {
		values = append(values, v.NodeValue(g))
	}
	if len(values) == 0 {
		panic(errNothing)
	}
	o.UpdateGraphWithGradients(scope, autodiff.Gradient(loss, values...), loss.DType())
}

var errNothing = errors.New("optim: the graph uses no trainable variable: nothing to train")

// UpdateGraphWithGradients adds one step to the graph. The gradients are those of the trainable variables that the
// graph uses, in the order of the store. All arithmetic and all state is in float32, or in float64 where the loss is:
// in the type of a 16-bit model's parameters, moments would lose what they sum up.
func (o *Optimizer) UpdateGraphWithGradients(scope *Scope, gradients []*Node, lossDType DType) {
	if len(gradients) == 0 {
		panic(errNothing)
	}
	g := gradients[0].Graph()
	variables := trained(scope, g)
	if len(variables) != len(gradients) {
		panic(fmt.Errorf("optim: %d gradients for %d trainable variables in use: %s", len(gradients), len(variables), names(variables)))
	}
	if !(o.rate > 0) || math.IsInf(o.rate, 0) {
		panic(fmt.Errorf("optim: the learning rate is %g, expected a positive, finite number", o.rate))
	}
	dtype := typeFor(lossDType)
	// GoMLX's optimizers count all batches of the store at its root; ours count their own, where several may train.
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
	o.chain.Update(s)
	for p := range s.Parameters() {
		s.Set(p.variable, graph.ConvertDType(graph.Sub(p.Value, graph.Mul(rate, p.Update)), p.variable.DType()))
	}
	count := s.model.Store().VariableWithValue(model.JoinPath(s.scope, "updates"), int64(0)).SetTrainable(false)
	s.Set(count, graph.AddScalar(count.NodeValue(g), 1))
	for _, f := range s.after {
		f()
	}
}

// newStep is a step without parameters, in the scope of all links.
func newStep(scope *Scope, g *Graph, dtype DType) *Step {
	return &Step{scope: scopeIn(scope), update: &update{model: scope, graph: g, dtype: dtype,
		taken:  map[string]bool{model.JoinPath(scopeIn(scope), perParameter): true},
		owners: map[*Variable]*Parameter{}, counts: map[string]*Node{}, factors: map[factor]*Node{}}}
}

// Clear deletes all variables of the optimizer, as of a model that will not be trained any more.
func (o *Optimizer) Clear(scope *Scope) error {
	own := []string{scopeIn(scope) + "/", adamPath(model.RootScopePath, ""), adamPath(scope.Scope(), "")}
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

func (o *Optimizer) rateVariable(scope *Scope, dtype DType) *Variable {
	return optimizer.LearningRateVarWithValue(scope, dtype, o.rate)
}

// typeFor is what the optimizer calculates in.
func typeFor(loss DType) DType {
	if loss == dtypes.Float64 {
		return loss
	}
	return dtypes.Float32
}

// scopeIn is where an optimizer's variables are: in GoMLX's scope for optimizers.
func scopeIn(scope *Scope) string { return model.JoinPath(scope.Scope(), optimizer.Scope) }

// trained are the variables that get a gradient, whatever the optimizer's scope is.
func trained(scope *Scope, g *Graph) []*Variable {
	var all []*Variable
	for v := range scope.Store().IterVariables() {
		if v.Trainable && v.InUseByGraph(g) {
			all = append(all, v)
		}
	}
	return all
}

func names(variables []*Variable) []string {
	all := make([]string, len(variables))
	for i, v := range variables {
		all[i] = v.Path()
	}
	return all
}

// Scaled is the optimizer with a [LossScale] as its first link, and that link, which the step's losses are to be given
// too. One that begins with a LossScale already is returned as it is.
func (o *Optimizer) Scaled() (*Optimizer, LossScale) {
	if len(o.chain) > 0 {
		if scale, ok := o.chain[0].(LossScale); ok {
			return o, scale
		}
	}
	scale := LossScale{}
	return New(o.rate, append(Chain{scale}, o.chain...)...), scale
}
