package optim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// ErrRateUntold is wrapped by the error about a chain without one learning rate: what scales the updates stands before
// a rule, which may cancel it, as [Adam] does, or mix it with other updates.
var ErrRateUntold = errors.New("the learning rate cannot be told")

// Rate is the learning rate that the next update is made with, a scalar, to be reported in a step's logs: the variable
// times what scales the updates at the end of the chain. It panics with [ErrRateUntold] where [Optimizer.FactorsAt] is
// that error, or gives several. The loss, of several the first, says in which graph and in which type.
func (o *Optimizer) Rate(scope *Scope, loss *Node) *Node {
	scales, err := o.chain.one()
	if err != nil {
		panic(err)
	}
	return o.scaled(scope, loss, scales)
}

// Rates are the same by the names of [Optimizer.FactorsAt], and its error.
func (o *Optimizer) Rates(scope *Scope, loss *Node) (map[string]*Node, error) {
	scales, _, err := o.chain.scales()
	rates := map[string]*Node{}
	for name, list := range scales {
		rates[name] = o.scaled(scope, loss, list)
	}
	return rates, err
}

func (o *Optimizer) scaled(scope *Scope, loss *Node, scales []Schedule) *Node {
	rate := o.rateVariable(scope, typeFor(loss.DType())).NodeValue(loss.Graph())
	for _, s := range scales {
		rate = graph.Mul(rate, s.Node(countVariable(scope).NodeValue(loss.Graph()), rate.DType()))
	}
	return graph.StopGradient(rate)
}

// RateAt is the same on the host, for the update with a number, counted from 0, as long as no other rate is set; NaN
// where there is no such rate.
func (o *Optimizer) RateAt(update int64) float64 {
	scales, err := o.chain.one()
	if err != nil {
		return math.NaN()
	}
	return o.rate * at(scales, update)
}

// FactorsAt is what the update with a number multiplies the rate with: the product of [Scale] and [ScaleBySchedule] at
// the end of the chain, behind all rules. There is one, under "", or, where [Groups] have such, one for each group by
// its name. Scaling elsewhere is an [ErrRateUntold].
func (o *Optimizer) FactorsAt(update int64) (map[string]float64, error) {
	scales, _, err := o.chain.scales()
	factors := map[string]float64{}
	for name, list := range scales {
		factors[name] = at(list, update)
	}
	return factors, err
}

func at(scales []Schedule, update int64) float64 {
	factor := 1.0
	for _, s := range scales {
		factor *= s.At(update)
	}
	return factor
}

// one are the scales of a chain that has one rate.
func (c Chain) one() ([]Schedule, error) {
	scales, _, err := c.scales()
	if list, ok := scales[""]; ok || err != nil {
		return list, err
	}
	return nil, fmt.Errorf("optim: %w: each of the groups %q has its own (FactorsAt)", ErrRateUntold, slices.Sorted(maps.Keys(scales)))
}

// scales are what multiplies the rate, by the names of groups that differ, else under ""; rule is the last link that
// makes updates of its own.
func (c Chain) scales() (scales map[string][]Schedule, rule string, err error) {
	scales = map[string][]Schedule{"": nil}
	for _, t := range slices.Backward(c) {
		of, its, err := scalesOf(t)
		_, single := scales[""]
		switch {
		case err != nil:
			return nil, "", err
		case len(of) > 0 && rule != "":
			return nil, "", fmt.Errorf("optim: %w: %s scales the updates before %s, which makes others of them: put it at the end of the chain", ErrRateUntold, t.Name(), rule)
		case len(of) > 0 && of[""] == nil && !single:
			return nil, "", fmt.Errorf("optim: %w: the groups of two Groups scale the updates", ErrRateUntold)
		case len(of) > 0 && of[""] == nil:
			for name := range of {
				of[name] = append(of[name], scales[""]...)
			}
			scales = of
		default:
			for name := range scales {
				scales[name] = append(scales[name], of[""]...)
			}
		}
		rule = cmp.Or(rule, its)
	}
	return scales, rule, nil
}

// scalesOf are those of a link, empty where it scales nothing.
func scalesOf(t Transformation) (scales map[string][]Schedule, rule string, err error) {
	switch t := t.(type) {
	case nil, Average, accumulate, skipNonFinite: // which leave the updates as they are, or their mean
		return nil, "", nil
	case scaleBySchedule:
		return map[string][]Schedule{"": {t.Schedule}}, "", nil
	case stateless:
		switch t.name {
		case scaleName:
			return map[string][]Schedule{"": {Constant(t.of.(float64))}}, "", nil
		case frozenName:
			return nil, "", nil
		}
	case Chain:
		scales, rule, err := t.scales()
		if list, single := scales[""]; single && len(list) == 0 {
			scales = nil
		}
		return scales, rule, err
	case masked:
		scales, rule, err := t.chain.scales()
		if list, single := scales[""]; err == nil && !(single && len(list) == 0) {
			err = fmt.Errorf("optim: %w: Masked scales the updates of some parameters: take Groups", ErrRateUntold)
		}
		return nil, rule, err
	case grouped:
		scales, differ := map[string][]Schedule{}, false
		for _, g := range t {
			of, its, err := g.Chain.scales()
			if err != nil {
				return nil, "", fmt.Errorf("group %q: %w", g.Name, err)
			}
			if its != "" {
				rule = its
			}
			for inner, list := range of {
				name := g.Name
				if inner != "" {
					name += "/" + inner
				}
				scales[name], differ = list, differ || len(list) > 0
			}
		}
		if !differ {
			scales = nil
		}
		return scales, rule, nil
	}
	return nil, t.Name(), nil
}
