package optim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

var errNoRate = errors.New("the chain has no single learning rate")

// Base returns the initial learning rate, without schedules. ok is false for a GoMLX optimizer.
func (o *Optimizer) Base() (rate float64, ok bool) { return o.rate, o.other == nil }

// Rate returns the learning rate of the next update, a scalar for a step's logs: the rate variable times the factor
// of [Optimizer.FactorsAt]. It panics if there is no single one. loss, the first of several, supplies the graph and
// the dtype.
func (o *Optimizer) Rate(scope *model.Scope, loss *graph.Node) *graph.Node {
	scales, err := o.one(scope)
	if err != nil {
		panic(err)
	}
	return o.scaled(scope, loss, scales)
}

// Rates is [Optimizer.Rate] for each name of [Optimizer.FactorsAt]; empty if that is an error. Call it before the
// update and after() afterwards: a GoMLX optimizer then has its rate variable.
func (o *Optimizer) Rates(scope *model.Scope, loss *graph.Node) (after func() map[string]*graph.Node) {
	rates := map[string]*graph.Node{}
	scales, err := o.scales(scope)
	for name, list := range scales {
		if err == nil && o.other == nil {
			rates[name] = o.scaled(scope, loss, list)
		}
	}
	return func() map[string]*graph.Node {
		v := scope.Store().GetVariable(model.JoinPath(scopeIn(scope), "learning_rate"))
		if o.other != nil && v != nil {
			rates[""] = v.NodeValue(loss.Graph())
		}
		return rates
	}
}

func (o *Optimizer) scaled(scope *model.Scope, loss *graph.Node, scales []scaling) *graph.Node {
	rate := o.rateVariable(scope, typeFor(loss.DType())).NodeValue(loss.Graph())
	for _, s := range scales {
		factor := s.Node(graph.ScalarZero(loss.Graph(), rate.DType()), rate.DType())
		if s.count != "" {
			count := scope.Store().VariableWithValue(s.count, int64(0)).SetTrainable(false)
			factor = s.Node(count.NodeValue(loss.Graph()), rate.DType())
		}
		rate = graph.Mul(rate, factor)
	}
	return graph.StopGradient(rate)
}

// RateAt returns on the host an update's rate, from 0, if unchanged since [New]; NaN without a single rate.
func (o *Optimizer) RateAt(update int64) float64 {
	scales, err := o.one(nil)
	if err != nil {
		return math.NaN()
	}
	return o.rate * at(scales, func(string) int64 { return update })
}

// FactorsAt returns the rate's factor at an update: the product of [Scale] and [ScaleBySchedule] at the chain's end,
// after all rules, by "", or by the group's name if [Groups] have scales. A scale elsewhere is an error: the chain has
// no single rate.
func (o *Optimizer) FactorsAt(update int64) (map[string]float64, error) {
	return o.Factors(func(string) int64 { return update })
}

// Factors is [Optimizer.FactorsAt] for schedules with different counts of updates. number receives a counting
// variable's name, for an optimizer at the root.
func (o *Optimizer) Factors(number func(count string) int64) (map[string]float64, error) {
	scales, err := o.scales(nil)
	factors := map[string]float64{}
	for name, list := range scales {
		factors[name] = at(list, number)
	}
	return factors, err
}

// count is the counting variable's full name, "" for a constant.
type scaling struct {
	Schedule
	count string
}

func at(scales []scaling, number func(count string) int64) float64 {
	factor := 1.0
	for _, s := range scales {
		update := int64(0)
		if s.count != "" {
			update = number(s.count)
		}
		factor *= s.At(update)
	}
	return factor
}

func (o *Optimizer) scales(scope *model.Scope) (map[string][]scaling, error) {
	if scope == nil {
		scope = model.NewStore().RootScope()
	}
	scales, _, err := o.chain.scales(&place{scopeIn(scope), map[string]bool{}})
	return scales, err
}

func (o *Optimizer) one(scope *model.Scope) ([]scaling, error) {
	scales, err := o.scales(scope)
	if o.other != nil {
		return nil, fmt.Errorf("optim: %w: it is one of GoMLX's optimizers, %v", errNoRate, o)
	}
	if list, ok := scales[""]; ok || err != nil {
		return list, err
	}
	return nil, fmt.Errorf("optim: %w: each of the groups %q has its own (FactorsAt)", errNoRate, slices.Sorted(maps.Keys(scales)))
}

type place struct {
	scope string
	taken map[string]bool
}

type link struct {
	scales map[string][]scaling
	rule   string // the last link in it that makes new updates
}

func (c Chain) scales(at *place) (scales map[string][]scaling, rule string, err error) {
	links := make([]link, len(c))
	for i, t := range c {
		if links[i], err = linkOf(t, at); err != nil {
			return nil, "", err
		}
	}
	scales = map[string][]scaling{"": nil}
	for i, l := range slices.Backward(links) {
		of := l.scales
		_, single := scales[""]
		_, one := of[""]
		switch {
		case len(of) > 0 && rule != "":
			return nil, "", fmt.Errorf("optim: %w: %s scales the updates before %s, which changes them again: put it at the end of the chain", errNoRate, c[i].Name(), rule)
		case len(of) > 0 && !one && !single:
			return nil, "", fmt.Errorf("optim: %w: the groups of two Groups scale the updates", errNoRate)
		case len(of) > 0 && !one:
			for name := range of {
				of[name] = append(of[name], scales[""]...)
			}
			scales = of
		default:
			for name := range scales {
				scales[name] = append(scales[name], of[""]...)
			}
		}
		rule = cmp.Or(rule, l.rule)
	}
	return scales, rule, nil
}

func linkOf(t Transformation, at *place) (l link, err error) {
	switch t := t.(type) {
	case nil:
		return link{}, nil
	case stateless:
		switch t.name {
		case scaleName:
			return link{scales: map[string][]scaling{"": {{Constant(t.of.(float64)), ""}}}}, nil
		case frozenName:
			return link{}, nil
		}
		return link{rule: t.Name()}, nil
	case Chain:
		l.scales, l.rule, err = t.scales(at)
		if list, single := l.scales[""]; single && len(list) == 0 {
			l.scales = nil
		}
		return l, err
	case masked:
		scales, rule, err := t.chain.scales(at)
		if list, single := scales[""]; err == nil && !(single && len(list) == 0) {
			err = fmt.Errorf("optim: %w: Masked scales the updates of some parameters: use Groups", errNoRate)
		}
		return link{rule: rule}, err
	}
	scope := claim(at.taken, at.scope, t.Name())
	switch t := t.(type) {
	case Average, Lookahead, accumulate, skipNonFinite: // no change of updates, or a mean
		return link{}, nil
	case scaleBySchedule:
		return link{scales: map[string][]scaling{"": {{t.Schedule, model.JoinPath(scope, countSlot)}}}}, nil
	case grouped:
		if err := t.check(); err != nil {
			return link{}, fmt.Errorf("optim: %w", err)
		}
		scales, differ := map[string][]scaling{}, false
		for _, g := range t {
			of, its, err := g.Chain.scales(&place{claim(at.taken, scope, g.Name), at.taken})
			if err != nil {
				return link{}, fmt.Errorf("group %q: %w", g.Name, err)
			}
			l.rule = cmp.Or(its, l.rule)
			for inner, list := range of {
				name := g.Name
				if inner != "" {
					name += "/" + inner
				}
				scales[name], differ = list, differ || len(list) > 0
			}
		}
		if differ {
			l.scales = scales
		}
		return l, nil
	}
	return link{rule: t.Name()}, nil
}
