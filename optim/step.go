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
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/lazo-ml/lazo/internal/awaited"
)

// Transformation is one link of an optimizer's chain. It changes a step's updates. Its state is in variables
// ([Step.Zeros], [Step.Number]) in a scope of its name.
type Transformation interface {
	// Name is the scope of its variables, in lower case: "lion".
	Name() string
	// Update builds the graph of one step. It panics with an error.
	Update(s *Step)
}

// Step is the graph of one step, for a [Transformation].
type Step struct {
	*update
	parameters []*Parameter
	scope      string
}

type update struct {
	model   *model.Scope
	trained []*Parameter
	graph   *graph.Graph
	dtype   dtypes.DType
	after   []func()
	taken   map[string]bool                // scopes of links
	owners  map[*model.Variable]*Parameter // the parameter for which a link keeps the variable
	// counts are by full name; factors are computed from them.
	counts  map[string]count
	factors map[factor]*graph.Node
}

// Parameter is a variable in training.
type Parameter struct {
	// Value is the variable before the step, Update its gradient as changed by the chain so far. Both have the
	// variable's dimensions and the dtype [Step.DType].
	Value, Update *graph.Node
	variable      *model.Variable
	gate          *graph.Node // whether the parameter is updated; nil: always
	gatedBy       string
}

// Name is the full name, like "/dense/weights".
func (p *Parameter) Name() string { return p.variable.Path() }

// Shape is the variable's.
func (p *Parameter) Shape() shapes.Shape { return p.variable.Shape() }

// Freeze leaves the variable bit-identical and removes it from all later links.
func (p *Parameter) Freeze() { p.Update = nil }

// Parameters iterates over the link's unfrozen parameters, in the order of the model's variables.
func (s *Step) Parameters() iter.Seq[*Parameter] {
	return func(yield func(*Parameter) bool) {
		for _, p := range s.parameters {
			if p.Update != nil && !yield(p) {
				return
			}
		}
	}
}

func (s *Step) each(f func(p *Parameter) *graph.Node) {
	for p := range s.Parameters() {
		p.Update = f(p)
	}
}

// Graph returns the step's graph.
func (s *Step) Graph() *graph.Graph { return s.graph }

// DType is the dtype of all updates and state: float32 or float64.
func (s *Step) DType() dtypes.DType { return s.dtype }

// Count counts a parameter's earlier updates that this link has seen, an int64 scalar. Steps that an earlier link held
// back do not count.
func (s *Step) Count(p *Parameter) *graph.Node {
	c := s.counted(p)
	return c.pick(c.in.node(s.graph))
}

// ofTime returns f(n + ahead), a scalar, for n the number of this update from 1. It calls f once for all parameters
// counted together, with a scalar if their counts are equal, else an array. Each f needs its own key.
func (s *Step) ofTime(p *Parameter, ahead, key float64, f func(n *graph.Node) *graph.Node) *graph.Node {
	c := s.counted(p)
	at := factor{c.in, ahead, key}
	if s.factors[at] == nil {
		s.factors[at] = f(graph.ConvertDType(graph.AddScalar(c.in.node(s.graph), 1+ahead), s.dtype))
	}
	return c.pick(s.factors[at])
}

func (s *Step) unbias(p *Parameter, decay, ahead float64) *graph.Node {
	return s.ofTime(p, ahead, decay, func(n *graph.Node) *graph.Node { return unbias(decay, n) })
}

func unbias(decay float64, n *graph.Node) *graph.Node {
	return graph.Reciprocal(graph.OneMinus(graph.Pow(graph.Scalar(n.Graph(), n.DType(), decay), n)))
}

// Zeros returns a variable of the link for a parameter, of its dimensions, initially zero.
func (s *Step) Zeros(p *Parameter, slot string) *model.Variable {
	return s.zeros(p, slot, p.Shape().Dimensions...)
}

func (s *Step) zeros(p *Parameter, slot string, dimensions ...int) *model.Variable {
	return s.zerosAt(p, model.JoinPath(s.scope, p.Name(), slot), dimensions)
}

func (s *Step) zerosAt(p *Parameter, path string, dimensions []int) *model.Variable {
	return s.own(p, s.model.Store().VariableWithShape(path, shapes.Make(s.dtype, dimensions...), initializer.Zero))
}

// own: v changes only when p does.
func (s *Step) own(p *Parameter, v *model.Variable) *model.Variable {
	s.owners[v] = p
	return v.SetTrainable(false)
}

func (s *Step) numberOf(p *Parameter, slot string, start any) *model.Variable {
	return s.own(p, s.model.Store().VariableWithValue(model.JoinPath(s.scope, p.Name(), slot), start))
}

// Number returns a scalar variable of the link, with the dtype and initial value of start.
func (s *Step) Number(slot string, start any) *model.Variable {
	return s.ofAll(s.model.Store().VariableWithValue(model.JoinPath(s.scope, slot), start))
}

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

// Set assigns a variable's value after the step. The variable keeps its value if an earlier link holds back its
// parameter or, for a [Step.Number], all of the link.
func (s *Step) Set(v *model.Variable, value *graph.Node) {
	var gate *graph.Node
	if p := s.owners[v]; p != nil {
		gate = p.gate
	} else {
		gate = s.gate()
	}
	if gate != nil {
		value = graph.Where(gate, value, v.NodeValue(s.graph))
	}
	v.SetNodeValue(value)
}

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

// Require holds the link's parameters back unless condition, a bool scalar, is true: they and the later links' state
// for them do not change.
func (s *Step) Require(condition *graph.Node) {
	both := map[*graph.Node]*graph.Node{nil: condition}
	for p := range s.Parameters() {
		if both[p.gate] == nil {
			both[p.gate] = graph.LogicalAnd(p.gate, condition)
		}
		s.require(p, both[p.gate])
	}
}

func (s *Step) require(p *Parameter, all *graph.Node) { p.gate, p.gatedBy = all, s.scope }

// After calls f when the parameters have their new values in the graph.
func (s *Step) After(f func()) { s.after = append(s.after, f) }

func (s *Step) in(scope string, parameters []*Parameter) *Step {
	return &Step{update: s.update, parameters: parameters, scope: scope}
}

// claim reserves a scope for a link. A repeated name gets a number.
func claim(taken map[string]bool, scope, name string) string {
	base := model.JoinPath(scope, name)
	scope = base
	for n := 2; taken[scope]; n++ {
		scope = fmt.Sprintf("%s_%d", base, n)
	}
	taken[scope] = true
	return scope
}

func (s *Step) once(name string) {
	if want := model.JoinPath(scopeIn(s.model), name); s.scope != want {
		panic(fmt.Errorf("optim: %s is at %s; it may be in a chain once, and not inside a group", name, s.scope))
	}
}

func scopeIn(scope *model.Scope) string { return model.JoinPath(scope.Scope(), optimizer.Scope) }

type stateless struct {
	name   string
	of     any
	update func(s *Step)
}

func (t stateless) String() string { return t.name + "(" + describe(t.of) + ")" }

func (t stateless) Name() string   { return t.name }
func (t stateless) Update(s *Step) { t.update(s) }

func check(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Errorf("optim: "+format, args...))
	}
}

func share(name string, v float64) {
	check(v >= 0 && v < 1, "%s is %g, expected a number from 0 to below 1", name, v)
}

func positive(name string, v float64) {
	check(v > 0 && v <= maxFloat, "%s is %g, expected a positive, finite number", name, v)
}

const maxFloat = 1.7976931348623157e308
