package managed

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/optim"
)

// WithPolicy has the state's steps work with mixed precision (Micikevicius et al. 2018): a step's function sees the
// batch's floating-point fields and the trainable variables in the policy's Compute; the state keeps the variables in
// Parameters, and there the optimizer works; losses and metrics are converted to Outputs. What is not trainable keeps
// its type.
//
//	state, err := managed.New(strategy, managed.WithOptimizer(o), managed.WithPolicy(optim.MixedBFloat16()))
//
// Layers take their type from their input, so most models need no change. Give the loss functions
// [Builder.ToOutputType] of what the model says, a layer that asks for a type [Builder.DType], and put normalisations
// in [FullPrecision]. float16 needs an [optim.LossScale] too: a state whose optimizer has none logs a warning to the
// runtime's log ([xla.Log]) when it is made. It is no error, because a loss can be scaled in other ways, or need it
// not.
//
// Each compilation calls the step's function twice, the first time to see which variables there are. It must not set a
// trainable variable, and a frozen layer is to be frozen by [TrainOnly] or [optim.Frozen], not by SetTrainable.
//
// Keras casts each variable where it is read; we cast all of them before the function runs, because GoMLX's layers know
// nothing of policies.
func WithPolicy(p optim.Policy) Option {
	return func(s *State) error {
		for _, t := range []dtypes.DType{p.Parameters, p.Compute, p.Outputs} {
			if !t.IsFloat() {
				return fmt.Errorf("policy %s: expected floating-point types, as of optim.MixedBFloat16()", p)
			}
		}
		s.model.policy = &p
		return nil
	}
}

// warnOfScale tells of an optimizer under which the small gradients of a policy vanish.
func (s *State) warnOfScale() {
	if s.model.policy == nil || s.model.optimizer == nil || !s.model.policy.NeedsLossScale() || s.model.optimizer.ScalesLoss() {
		return
	}
	s.values.Strategy().Runtime().Logger().Warn(fmt.Sprintf("managed: policy %s: gradients below 6e-8 vanish: "+
		"put an optim.LossScale into the optimizer's chain and give its Loss the loss", s.model.policy))
}

// DType is the type in which layers calculate: float32 unless a policy says another one.
func (b *Builder) DType() dtypes.DType {
	if b.casting == nil {
		return dtypes.Float32
	}
	return b.casting.dtype
}

// ToOutputType converts what a model says to the type of the policy's outputs, for the loss; without a policy it is x.
func (b *Builder) ToOutputType(x *graph.Node) *graph.Node {
	if b.casting == nil {
		return x
	}
	return b.casting.policy.Out(x)
}

// FullPrecision builds a part of a model in the type that the parameters are kept in, as normalisations want it, whose
// sums lose too much in 16 bits; what it says has x's type again. Without a policy it is build(x). It works inside the
// step functions of this package.
func FullPrecision(scope *model.Scope, x *graph.Node, build func(x *graph.Node) *graph.Node) *graph.Node {
	c := builderOf(x).casting
	if c == nil || c.dtype == c.policy.Parameters {
		return build(x)
	}
	c.leave()
	y := build(graph.ConvertDType(x, c.policy.Parameters))
	c.enter()
	return graph.ConvertDType(y, x.DType())
}

// casting is a policy at work in one graph.
type casting struct {
	policy optim.Policy
	dtype  dtypes.DType // in which layers calculate
	casts  []cast
}

// cast is a variable that layers see in another type.
type cast struct {
	variable       *model.Variable
	fresh          bool            // it is not on the device yet
	value          *tensors.Tensor // put aside meanwhile, of a fresh one; nil if it has none yet
	kept, computed *graph.Node
	seen           *graph.Node // by layers: computed, unless they are given something else, as averages
}

// report calls the step's function. Under a policy it leaves the variables, in the graph and out of it, as they were.
func (s *Stepper) report(b *Builder, c *compiled) {
	p := c.state.model.policy
	if p == nil {
		s.build(b)
		b.finish()
		return
	}
	if p.Compute != p.Parameters && c.cast == nil {
		c.cast = s.rehearse(c, *p)
	}
	b.casting = &casting{policy: *p, dtype: p.Compute}
	b.castBatch()
	for _, v := range c.cast {
		k := cast{variable: v, kept: v.NodeValue(b.graph)}
		k.computed = p.In(k.kept)
		k.seen = k.computed
		if c.state.values.Place(v) < 0 {
			k.fresh = true
			if v.HasValue() {
				value, err := v.Value()
				must(err)
				k.value = value
			}
		}
		b.casting.casts = append(b.casting.casts, k)
	}
	defer func() { // also where the step's function panics
		for _, k := range b.casting.casts {
			k.restore()
		}
	}()
	b.casting.enter()
	s.build(b)
	b.finish()
	b.casting.leave()
	for _, k := range b.casting.casts {
		if k.seen != k.computed {
			panic(fmt.Errorf("the step's function sets the trainable variable %s, which it cannot under a policy: do it in the optimizer, or make it not trainable",
				k.variable.Path()))
		}
	}
}

// rehearse calls the step's function in the parameters' type, for a graph that is thrown away: layers make their
// variables in the type of their input. It gives the variables to be cast.
func (s *Stepper) rehearse(c *compiled, p optim.Policy) []*model.Variable {
	g := graph.NewGraph(c.state.values.Strategy().Runtime(), s.name)
	defer g.Finalize()
	batch := make([]*graph.Node, len(c.inputs))
	for i, in := range c.inputs {
		batch[i] = graph.Parameter(g, in.Name, in.Shape)
	}
	b := s.builder(g, c, batch)
	b.casting = &casting{policy: p, dtype: p.Parameters}
	b.castBatch()
	s.build(b)
	b.finish()
	trained := []*model.Variable{}
	for v := range c.state.model.store.IterVariables() {
		if v.Trainable && v.InUseByGraph(g) && v.DType().IsFloat() {
			trained = append(trained, v)
		}
	}
	return trained
}

// castBatch has the step's function see the batch in the type of the layers.
func (b *Builder) castBatch() {
	b.batch = slices.Clone(b.batch) // the strategy has the slice too
	for i, x := range b.batch {
		if x.DType().IsFloat() {
			b.batch[i] = graph.ConvertDType(x, b.casting.dtype)
		}
	}
}

// enter has layers see the variables in the policy's Compute.
func (c *casting) enter() {
	for _, k := range c.casts {
		k.variable.SetNodeValue(k.seen)
		retype(k.variable, k.computed.DType())
	}
}

// leave has them see the variables as they are kept.
func (c *casting) leave() {
	for i, k := range c.casts {
		value := k.kept
		if c.casts[i].seen = k.variable.NodeValue(k.kept.Graph()); c.casts[i].seen != k.computed {
			value = graph.ConvertDType(c.casts[i].seen, k.kept.DType())
		}
		k.variable.SetNodeValue(value)
		k.restore()
	}
}

// restore has the variable be, out of the graph, as it was.
func (k cast) restore() {
	retype(k.variable, k.kept.DType())
	if k.fresh {
		must(k.variable.SetValuePreservingOld(k.value))
	}
}

// retype has a variable say that it is of a type. GoMLX takes the type from the value and checks what layers ask for
// against it; the value is an empty one.
func retype(v *model.Variable, dtype dtypes.DType) {
	if v.DType() == dtype {
		return
	}
	t := tensors.FromShape(shapes.Make(dtype, v.Shape().Dimensions...))
	must(v.SetValuePreservingOld(t))
	t.FinalizeLocal()
}

// must panics with an error, as graph functions do.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
