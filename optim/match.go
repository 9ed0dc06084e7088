package optim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/internal/listed"
)

// Match selects parameters: [Under], [RankFrom], [Matrices], [Not] of one of them, or a [MatchFunc].
//
// A Match by name must match a variable that steps have made; otherwise the training step is an error that lists
// them. A Match by shape, and one in [Optional], may match none.
type Match interface {
	// Takes reports whether the Match selects the parameter of this full name ("/dense/weights") and shape.
	Takes(name string, shape shapes.Shape) bool
}

// MatchFunc is a function as a [Match].
type MatchFunc func(name string, shape shapes.Shape) bool

// Takes calls f.
func (f MatchFunc) Takes(name string, shape shapes.Shape) bool { return f(name, shape) }

func (MatchFunc) String() string { return "the MatchFunc" }

// Under selects the parameters in and below a scope, or the one of that name: Under("/encoder").
func Under(scope string) Match { return under(strings.TrimSuffix(scope, "/")) }

type under string

func (u under) Takes(name string, _ shapes.Shape) bool {
	below, ok := strings.CutPrefix(name, string(u))
	return ok && (below == "" || below[0] == '/')
}

func (u under) String() string { return fmt.Sprintf("Under(%q)", string(u)) }

type byShape struct {
	words string
	takes func(shapes.Shape) bool
}

func (b byShape) Takes(_ string, shape shapes.Shape) bool { return b.takes(shape) }
func (b byShape) String() string                          { return b.words }

// Matrices selects the parameters with two axes.
var Matrices Match = byShape{"Matrices", func(shape shapes.Shape) bool { return shape.Rank() == 2 }}

// RankFrom selects the parameters with at least this many axes: RankFrom(2) matrices and kernels, not biases and scales
// of normalizations.
func RankFrom(axes int) Match {
	return byShape{fmt.Sprintf("RankFrom(%d)", axes), func(shape shapes.Shape) bool { return shape.Rank() >= axes }}
}

// Not selects the parameters that m does not.
func Not(m Match) Match { return not{m} }

type not struct{ Match }

func (n not) Takes(name string, shape shapes.Shape) bool { return !takes(n.Match, name, shape) }

// Optional is m, but may select nothing: for an optimizer of several models, or parts added later.
func Optional(m Match) Match { return optional{m} }

type optional struct{ Match }

func (o optional) Takes(name string, shape shapes.Shape) bool { return takes(o.Match, name, shape) }

func takes(m Match, name string, shape shapes.Shape) bool { return m == nil || m.Takes(name, shape) }

// selects is m.Takes, but panics if a Match by name selects none of the variables that the groups in before leave.
func (s *Step) selects(what string, m Match, before ...Match) func(*Parameter) bool {
	named, inverted := m, false
	for n, ok := named.(not); ok; n, ok = named.(not) {
		named, inverted = n.Match, true
	}
	switch named.(type) {
	case nil, byShape, optional:
	default:
		all, whose := s.ofModel(), "of the model"
		if len(before) > 0 && !inverted {
			all = slices.DeleteFunc(all, func(v *model.Variable) bool {
				return slices.ContainsFunc(before, func(m Match) bool { return takes(m, v.Path(), v.Shape()) })
			})
			whose = "that the earlier groups leave"
		}
		check(slices.ContainsFunc(all, func(v *model.Variable) bool { return named.Takes(v.Path(), v.Shape()) }),
			"%s: %v matches no variable %s%s; there are %s; set Optional for a match that may match none", what, named, whose, meant(named, all), listed.Some(names(all)))
	}
	return func(p *Parameter) bool { return takes(m, p.Name(), p.Shape()) }
}

func (s *Step) ofModel() (all []*model.Variable) {
	for v := range s.model.Store().IterVariables() {
		kept := slices.ContainsFunc([]string{"/" + optimizer.Scope + "/", "/" + optimizer.AdamDefaultScope, "/metrics/"}, func(scope string) bool {
			return strings.Contains(v.Path(), scope)
		})
		if v.DType().IsFloat() && !kept {
			all = append(all, v)
		}
	}
	return all
}

func meant(m Match, all []*model.Variable) string {
	u, ok := m.(under)
	if !ok {
		return ""
	}
	last := string(u[strings.LastIndex(string(u), "/")+1:])
	var found []string
	for _, v := range all {
		parts := strings.Split(v.Path(), "/")
		for i, part := range parts {
			if scope := strings.Join(parts[:i+1], "/"); part == last && part != "" && !slices.Contains(found, scope) {
				found = append(found, scope)
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", listed.Some(found))
}
