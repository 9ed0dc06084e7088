package optim

import (
	"cmp"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
)

// Adam divides a moving average of the updates by the root of one of their squares, both free of the zeros that they began
// with (Kingma and Ba 2015). With [WeightDecay] behind it it is AdamW. A zero field takes its default.
//
// The rule is GoMLX's, and so are its variables: /AdamOptimizer/…, as for a model trained with GoMLX's Adam alone.
type Adam struct {
	// Beta1 and Beta2 are how much of the averages of updates and squares stays: 0.9 and 0.999.
	Beta1, Beta2 float64
	// Epsilon is added to the root, 1e-8 (GoMLX alone and Keras have 1e-7).
	Epsilon float64
}

// Name is "adam".
func (Adam) Name() string { return "adam" }

// Update is one step of the rule.
func (t Adam) Update(s *Step) { t.update(s, optimizers.Adam()) }

// Adamax is [Adam] with a decaying maximum instead of the root of squares (section 7 of the same paper).
type Adamax Adam

// Name is "adamax".
func (Adamax) Name() string { return "adamax" }

// Update is one step of the rule.
func (t Adamax) Update(s *Step) { Adam(t).update(s, optimizers.Adam().Adamax()) }

func (t Adam) update(s *Step, rule *optimizers.AdamConfig) {
	b1, b2, epsilon := cmp.Or(t.Beta1, 0.9), cmp.Or(t.Beta2, 0.999), cmp.Or(t.Epsilon, 1e-8)
	share("Adam.Beta1", b1)
	share("Adam.Beta2", b2)
	positive("Adam.Epsilon", epsilon)
	// GoMLX has its moments at the root of all scopes; so the scope is one name, which tells groups apart.
	scope := goMLXScope + strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(s.scope, scopeIn(s.vars)), "/adam"), "/", "_")
	s.transform(rule.Betas(b1, b2).Epsilon(epsilon).DType(s.dtype).Scope(scope).Done())
}

const goMLXScope = optimizers.AdamDefaultScope

// goMLXScopes are the scopes at the root that Adam made.
func goMLXScopes(vars *Vars) []string {
	seen := map[string]bool{}
	var all []string
	for v := range vars.IterVariables() {
		first, _, _ := strings.Cut(strings.TrimPrefix(v.Scope(), context.RootScope), context.ScopeSeparator)
		if strings.HasPrefix(first, goMLXScope) && !seen[first] {
			seen[first] = true
			all = append(all, context.RootScope+first)
		}
	}
	return all
}

// transform makes a transformation of one of GoMLX's optimizers, which know only how to change variables: for the time of
// the call each parameter is zero and the rate 1, so that it becomes minus the update, and all else that the optimizer
// changes is its state. It must not decay weights (they are zero).
func (s *Step) transform(o optimizers.Interface) {
	mine := map[*Variable]*Parameter{}
	var updates []*Node
	for p := range s.Parameters() {
		mine[p.variable] = p
		updates = append(updates, p.Update)
	}
	if len(updates) == 0 {
		return
	}
	for _, v := range trained(s.vars, s.graph) {
		if mine[v] == nil { // it would be taken for one that has an update
			v.SetTrainable(false)
			defer v.SetTrainable(true)
		}
	}
	before := map[*Variable]*Node{}
	for v := range s.vars.IterVariables() {
		if v.InUseByGraph(s.graph) {
			before[v] = v.ValueGraph(s.graph)
		}
	}
	rate := optimizers.LearningRateVarWithValue(s.vars, s.dtype, 1) // which is there
	rate.SetValueGraph(graph.Scalar(s.graph, s.dtype, 1.0))
	for p := range s.Parameters() {
		p.variable.SetValueGraph(graph.ZerosLike(before[p.variable]))
	}
	o.(gradientOptimizer).UpdateGraphWithGradients(s.vars, updates, s.dtype)
	steps := optimizers.GetGlobalStepVar(s.vars) // counted by the chain
	for v := range s.vars.IterVariables() {
		if !v.InUseByGraph(s.graph) {
			continue
		}
		old, now := before[v], v.ValueGraph(s.graph)
		if old == nil {
			old = s.graph.GetParameterByName(v.ParameterName())
		}
		if now == old {
			continue
		}
		v.SetValueGraph(old)
		switch p := mine[v]; {
		case p != nil:
			p.Update = graph.ConvertDType(graph.Neg(now), s.dtype)
		case v != rate && v != steps:
			s.Set(v, now)
		}
	}
}

type gradientOptimizer interface {
	UpdateGraphWithGradients(vars *Vars, gradients []*Node, lossDType dtypes.DType)
}

// LAMB is [Adam] with weight decay whose updates have the norm of their parameters (You et al. 2020, "Large batch
// optimization for deep learning"). A zero field takes its default.
type LAMB struct {
	// Beta1 and Beta2 are Adam's, 0.9 and 0.999; Epsilon is 1e-6.
	Beta1, Beta2, Epsilon float64
	// Decay is added before the norms are taken; none by default.
	Decay WeightDecay
}

// Name is "lamb".
func (LAMB) Name() string { return "lamb" }

// Update is one step of the rule.
func (t LAMB) Update(s *Step) {
	Chain{Adam{t.Beta1, t.Beta2, cmp.Or(t.Epsilon, 1e-6)}, t.Decay, TrustRatio()}.Update(s)
}
