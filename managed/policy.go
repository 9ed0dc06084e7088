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

// WithPolicy enables mixed precision (Micikevicius et al. 2018). Build functions see floating-point fields and
// trainable variables in the policy's Compute dtype. The state and the optimizer keep variables in Parameters. Losses
// and metrics become Outputs. Untrained variables keep their dtype.
//
// Use [Builder.ToOutputType] before the loss, [Builder.DType] for layers that need a dtype, and [FullPrecision] for
// normalizations. float16 usually needs an [optim.LossScale]; without one, New logs a warning ([xla.Log]).
//
// Each compilation calls the build function twice. It must not set a trainable variable. Freeze layers by [TrainOnly]
// or [optim.Frozen], not SetTrainable.
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

// DType returns the layers' dtype: float32 or the policy's.
func (b *Builder) DType() dtypes.DType {
	if b.casting == nil {
		return dtypes.Float32
	}
	return b.casting.dtype
}

// ToOutputType converts a model's result to the policy's Outputs dtype.
func (b *Builder) ToOutputType(x *graph.Node) *graph.Node {
	if b.casting == nil {
		return x
	}
	return b.casting.policy.Out(x)
}

// FullPrecision builds a part of a model in the parameters' dtype and converts the result to x's, for normalizations,
// whose sums are inaccurate in 16 bits. It works only in this package's build functions.
func FullPrecision(scope *model.Scope, x *graph.Node, build func(x *graph.Node) *graph.Node) *graph.Node {
	c := builderOf(x, "FullPrecision").casting
	if c == nil || c.dtype == c.policy.Parameters {
		return build(x)
	}
	c.leave()
	y := build(graph.ConvertDType(x, c.policy.Parameters))
	c.enter()
	return graph.ConvertDType(y, x.DType())
}

type casting struct {
	policy optim.Policy
	dtype  dtypes.DType
	casts  []cast
}

type cast struct {
	variable       *model.Variable
	fresh          bool
	value          *tensors.Tensor
	kept, computed *graph.Node
	seen           *graph.Node
}

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
	defer func() {
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
			panic(fmt.Errorf("the step's function sets the trainable variable %s, which is not supported under a policy: set it in the optimizer, or make it not trainable",
				k.variable.Path()))
		}
	}
}

// rehearse returns the variables to cast, by a discarded graph: layers create variables in their input's dtype.
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

func (b *Builder) castBatch() {
	b.batch = slices.Clone(b.batch) // shared with the strategy
	for i, x := range b.batch {
		if x.DType().IsFloat() {
			b.batch[i] = graph.ConvertDType(x, b.casting.dtype)
		}
	}
}

func (c *casting) enter() {
	for _, k := range c.casts {
		k.variable.SetNodeValue(k.seen)
		retype(k.variable, k.computed.DType())
	}
}

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

func (k cast) restore() {
	retype(k.variable, k.kept.DType())
	if k.fresh {
		must(k.variable.SetValuePreservingOld(k.value))
	}
}

// retype sets an empty value: GoMLX checks its dtype.
func retype(v *model.Variable, dtype dtypes.DType) {
	if v.DType() == dtype {
		return
	}
	t := tensors.FromShape(shapes.Make(dtype, v.Shape().Dimensions...))
	must(v.SetValuePreservingOld(t))
	t.FinalizeLocal()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
