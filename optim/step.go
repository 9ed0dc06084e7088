package optim

import (
	"fmt"
	"iter"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"

	"github.com/lazo-ml/lazo/internal/awaited"
)

// Transformation is one link of an optimizer's chain: it changes the updates of a step on their way from the gradients
// to the parameters. One that keeps something from step to step keeps it in variables ([Step.Zeros], [Step.Number]) in
// a scope with its name.
type Transformation interface {
	// Name is the scope of its variables, in lower case: "lion".
	Name() string
	// Update builds the graph of one step; it panics with an error where it cannot, as graph functions do.
	Update(s *Step)
}

// Step is the graph of one step, as a [Transformation] sees it.
type Step struct {
	*update
	parameters []*Parameter
	scope      string
}

// update is what all links of an optimizer share in a step.
type update struct {
	model   *model.Scope // that the optimizer was given
	trained []*Parameter // the parameters of all links
	graph   *graph.Graph
	dtype   dtypes.DType
	after   []func()
	taken   map[string]bool                // scopes of links
	owners  map[*model.Variable]*Parameter // for which links keep variables
	// counts are those of parameters' updates, by their full names, and factors what is computed from them.
	counts  map[string]count
	factors map[factor]*graph.Node
}

// Parameter is a variable in training.
type Parameter struct {
	// Value is the variable's value before the step, Update what the chain has made of its gradient so far; both have
	// the variable's dimensions and the step's [Step.DType].
	Value, Update *graph.Node
	variable      *model.Variable
	gate          *graph.Node // whether the parameter is updated; nil: always
	gatedBy       string      // the scope of the link that set the gate, "" before the first
}

// Name is the variable's full name, as "/dense/weights".
func (p *Parameter) Name() string { return p.variable.Path() }

// Shape is the variable's shape.
func (p *Parameter) Shape() shapes.Shape { return p.variable.Shape() }

// Freeze leaves the variable as it is, bit for bit: no later link sees it, and none keeps anything for it.
func (p *Parameter) Freeze() { p.Update = nil }

// Parameters are those that the link is to change, in the order of the model's variables, without the frozen ones.
func (s *Step) Parameters() iter.Seq[*Parameter] {
	return func(yield func(*Parameter) bool) {
		for _, p := range s.parameters {
			if p.Update != nil && !yield(p) {
				return
			}
		}
	}
}

// each replaces every update.
func (s *Step) each(f func(p *Parameter) *graph.Node) {
	for p := range s.Parameters() {
		p.Update = f(p)
	}
}

// Graph is the graph of the step.
func (s *Step) Graph() *graph.Graph { return s.graph }

// DType is the type of all updates and of all state: float32 or float64.
func (s *Step) DType() dtypes.DType { return s.dtype }

// Count is the number of updates of a parameter that this link has seen before this one, an int64 scalar. Each
// parameter has its own: one that is trained later, or not in every step ([managed.TrainOnly]), counts from its own
// first update. Steps that a link before this one held back are not counted.
//
// [managed.TrainOnly]: https://pkg.go.dev/github.com/lazo-ml/lazo/managed#TrainOnly
func (s *Step) Count(p *Parameter) *graph.Node {
	c := s.counted(p)
	return c.pick(c.in.node(s.graph))
}

// ofTime returns f of the number of this update of a parameter, from 1, plus ahead: a scalar. It calls f once for all
// parameters that are counted together, with a scalar where their counts are equal, else with an array. Functions of
// one step have different keys.
func (s *Step) ofTime(p *Parameter, ahead, key float64, f func(n *graph.Node) *graph.Node) *graph.Node {
	c := s.counted(p)
	at := factor{c.in, ahead, key}
	if s.factors[at] == nil {
		s.factors[at] = f(graph.ConvertDType(graph.AddScalar(c.in.node(s.graph), 1+ahead), s.dtype))
	}
	return c.pick(s.factors[at])
}

// unbias returns the factor 1 / (1 - decay^n) for a moving average of a parameter that began with zeros. n is the
// number of this update plus ahead.
func (s *Step) unbias(p *Parameter, decay, ahead float64) *graph.Node {
	return s.ofTime(p, ahead, decay, func(n *graph.Node) *graph.Node { return unbias(decay, n) })
}

// Zeros is a variable of the link for a parameter: of its dimensions, and zero at the start.
func (s *Step) Zeros(p *Parameter, slot string) *model.Variable {
	return s.zeros(p, slot, p.Shape().Dimensions...)
}

func (s *Step) zeros(p *Parameter, slot string, dimensions ...int) *model.Variable {
	return s.zerosAt(p, model.JoinPath(s.scope, p.Name(), slot), dimensions)
}

func (s *Step) zerosAt(p *Parameter, path string, dimensions []int) *model.Variable {
	return s.own(p, s.model.Store().VariableWithShape(path, shapes.Make(s.dtype, dimensions...), initializer.Zero))
}

// own notes that a variable is kept for a parameter: it changes where the parameter does.
func (s *Step) own(p *Parameter, v *model.Variable) *model.Variable {
	s.owners[v] = p
	return v.SetTrainable(false)
}

// numberOf is a number that the link keeps for a parameter.
func (s *Step) numberOf(p *Parameter, slot string, start any) *model.Variable {
	return s.own(p, s.model.Store().VariableWithValue(model.JoinPath(s.scope, p.Name(), slot), start))
}

// Number is a variable of the link: a scalar that starts with the given value, of its type.
func (s *Step) Number(slot string, start any) *model.Variable {
	return s.ofAll(s.model.Store().VariableWithValue(model.JoinPath(s.scope, slot), start))
}

// ofAll notes that a variable is kept for all parameters of the link.
func (s *Step) ofAll(v *model.Variable) *model.Variable {
	if numbers := awaited.Of(s.graph).Numbers; numbers != nil {
		for p := range s.Parameters() {
			if name := p.Name(); !slices.Contains(numbers[v.Path()], name) {
				numbers[v.Path()] = append(numbers[v.Path()], name)
			}
		}
	}
	return v.SetTrainable(false)
}

// Set gives a variable its value after the step. It keeps the old one if a link before this one holds the step back:
// what is kept for a parameter if that parameter is held back, a [Step.Number] if all parameters of the link are.
func (s *Step) Set(v *model.Variable, value *graph.Node) {
	gate := s.gate()
	if p := s.owners[v]; p != nil {
		gate = p.gate
	}
	if gate != nil {
		value = graph.Where(gate, value, v.NodeValue(s.graph))
	}
	v.SetNodeValue(value)
}

// gate tells whether one of the parameters is updated; nil: always.
func (s *Step) gate() *graph.Node {
	var gates []*graph.Node
	for p := range s.Parameters() {
		if p.gate == nil {
			return nil
		}
		if !slices.Contains(gates, p.gate) {
			gates = append(gates, p.gate)
		}
	}
	if len(gates) == 0 {
		return nil
	}
	one := gates[0]
	for _, g := range gates[1:] {
		one = graph.LogicalOr(one, g)
	}
	return one
}

// Require holds the link's parameters back unless a condition, a scalar bool, is true: then the links after this one
// change nothing of theirs, and the parameters stay as they are. In a group that concerns the group's parameters alone.
func (s *Step) Require(condition *graph.Node) {
	both := map[*graph.Node]*graph.Node{nil: condition}
	for p := range s.Parameters() {
		if both[p.gate] == nil {
			both[p.gate] = graph.LogicalAnd(p.gate, condition)
		}
		s.require(p, both[p.gate])
	}
}

// require is Require for one parameter, with all conditions so far.
func (s *Step) require(p *Parameter, all *graph.Node) { p.gate, p.gatedBy = all, s.scope }

// After has something built when the parameters have their new values.
func (s *Step) After(f func()) { s.after = append(s.after, f) }

// in is the step for a part of the parameters, in a scope.
func (s *Step) in(scope string, parameters []*Parameter) *Step {
	return &Step{update: s.update, parameters: parameters, scope: scope}
}

// claim gives a link a scope of its own: the second of a name gets a number, so that a link of another name can be put
// in without any variable changing its name.
func claim(taken map[string]bool, scope, name string) string {
	base := model.JoinPath(scope, name)
	scope = base
	for n := 2; taken[scope]; n++ {
		scope = fmt.Sprintf("%s_%d", base, n)
	}
	taken[scope] = true
	return scope
}

// once is for links of which an optimizer can have one only.
func (s *Step) once(name string) {
	if want := model.JoinPath(scopeIn(s.model), name); s.scope != want {
		panic(fmt.Errorf("optim: %s is at %s; it can be in a chain once, and not inside of a group", name, s.scope))
	}
}

// stateless is a link that keeps nothing.
type stateless struct {
	name   string
	of     any // its setting, nil for none
	update func(s *Step)
}

func (t stateless) String() string { return t.name + "(" + describe(t.of) + ")" }

func (t stateless) Name() string   { return t.name }
func (t stateless) Update(s *Step) { t.update(s) }

// check panics unless a setting is as it should be.
func check(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Errorf("optim: "+format, args...))
	}
}

// share checks a setting that is from 0 to below 1.
func share(name string, v float64) {
	check(v >= 0 && v < 1, "%s is %g, expected a number from 0 to below 1", name, v)
}

// positive checks a setting that is above 0 and finite.
func positive(name string, v float64) {
	check(v > 0 && v <= maxFloat, "%s is %g, expected a positive, finite number", name, v)
}

const maxFloat = 1.7976931348623157e308
