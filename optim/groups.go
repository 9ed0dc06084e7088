package optim

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/ml/model"
)

// Chain applies several transformations in order, as one.
type Chain []Transformation

func (c Chain) Name() string { return "chain" }

func (c Chain) Update(s *Step) {
	for i, t := range c {
		check(t != nil, "link %d of a chain of %d is nil", i+1, len(c))
		switch t.(type) {
		case Chain, masked, stateless:
			t.Update(s)
		default:
			t.Update(s.in(claim(s.taken, s.scope, t.Name()), s.parameters))
		}
	}
}

// claim takes the links' scopes, as [Chain.Update].
func (c Chain) claim(taken map[string]bool, scope string) {
	for _, t := range c {
		switch t := t.(type) {
		case Chain:
			t.claim(taken, scope)
		case masked:
			t.chain.claim(taken, scope)
		case nil, stateless:
		default:
			claim(taken, scope, t.Name())
		}
	}
}

// Frozen leaves the selected parameters bit-identical; nil selects all. As the first link it also excludes them from
// [Clip]'s GlobalNorm. An nn.BatchNorm with frozen scale and offset uses and keeps its running averages.
func Frozen(m Match) Transformation {
	return stateless{frozenName, m, func(s *Step) {
		mine := s.selects("Frozen", m)
		for p := range s.Parameters() {
			if mine(p) {
				p.Freeze()
			}
		}
	}}
}

const frozenName = "frozen"

// Freezes reports whether [Frozen] excludes a parameter from training; layers then keep related state.
func (o *Optimizer) Freezes(name string, shape shapes.Shape) bool {
	return o.chain.freezes(name, shape)
}

func (c Chain) freezes(name string, shape shapes.Shape) bool {
	return slices.ContainsFunc(c, func(t Transformation) bool {
		switch t := t.(type) {
		case stateless:
			m, _ := t.of.(Match)
			return t.name == frozenName && takes(m, name, shape)
		case Chain:
			return t.freezes(name, shape)
		case masked:
			return takes(t.match, name, shape) && t.chain.freezes(name, shape)
		case grouped:
			i := slices.IndexFunc(t, func(g Group) bool { return takes(g.Match, name, shape) })
			return i >= 0 && t[i].Chain.freezes(name, shape)
		}
		return false
	})
}

// Masked applies a chain to the selected parameters only.
func Masked(m Match, chain ...Transformation) Transformation { return masked{m, slices.Clone(chain)} }

type masked struct {
	match Match
	chain Chain
}

func (masked) Name() string { return "masked" }

func (t masked) String() string {
	return "masked(" + describe(t.match) + ", " + describe(t.chain) + ")"
}

func (t masked) Update(s *Step) {
	selected := s.selects("Masked", t.match)
	var mine []*Parameter
	for p := range s.Parameters() {
		if selected(p) {
			mine = append(mine, p)
		}
	}
	if len(mine) == 0 {
		t.chain.claim(s.taken, s.scope) // later links keep their names
		return
	}
	t.chain.Update(s.in(s.scope, mine))
}

// Group is a chain for some of the parameters.
type Group struct {
	// Name is the scope of the group's variables and its learning rate's name, unique within one Groups.
	Name string
	// Match selects from the parameters that earlier groups left; nil selects all.
	Match Match
	Chain Chain
}

// Groups applies a separate chain to each group of parameters: other rules, or other rates by [Scale] and
// [ScaleBySchedule]. A parameter in no group is an error.
func Groups(groups ...Group) Transformation {
	groups = slices.Clone(groups)
	for i := range groups {
		groups[i].Chain = slices.Clone(groups[i].Chain)
	}
	return grouped(groups)
}

type grouped []Group

func (grouped) Name() string { return "groups" }

func (t grouped) check() error {
	taken := map[string]bool{}
	for i, group := range t {
		if group.Name == "" || strings.Contains(group.Name, "/") {
			return fmt.Errorf("group %d has the name %q, expected one without %q", i+1, group.Name, "/")
		}
		if own := path.Base(claim(taken, model.RootScopePath, group.Name)); own != group.Name {
			return fmt.Errorf("group %d has the name %q, as an earlier group has: expected another name, since the rates of both would be logged under one name; "+
				"with the name %q it finds the values that earlier versions of lazo have saved for it", i+1, group.Name, own)
		}
	}
	return nil
}

func (t grouped) Update(s *Step) {
	err := t.check()
	check(err == nil, "%v", err)
	rest := s.parameters
	var before []Match
	for _, group := range t {
		selected := s.selects(fmt.Sprintf("group %q", group.Name), group.Match, before...)
		before = append(before, group.Match)
		var mine, others []*Parameter
		for _, p := range rest {
			switch {
			case p.Update == nil:
			case selected(p):
				mine = append(mine, p)
			default:
				others = append(others, p)
			}
		}
		rest = others
		if scope := claim(s.taken, s.scope, group.Name); len(mine) > 0 {
			group.Chain.Update(s.in(scope, mine))
		}
	}
	for _, p := range rest {
		check(p.Update == nil, "%s, %s, is in no group: add a last group without a Match", p.Name(), p.Shape())
	}
}
