package hlo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types/shardy"
)

// Function is main, a function for [Function.Call], or a closure. Return ends it. Operations that GoMLX composes return
// compute.ErrNotImplemented.
type Function struct {
	notimplemented.Function
	b      *Builder
	name   string
	parent *Function

	// All functions number values together; the number identifies the operation.
	text     *stablehlo.Function
	outputs  []*value
	returned bool
	in, out  []*shardy.ShardingSpec // nil: unspecified

	uses     []*Function // closures and called functions
	called   []*Function
	takes    []taken // by that statement's closures
	captured []*op
	params   []*op
	choices  []compute.Function
	branch   bool
	aliases  map[*value]*value // captured → own value
}

var _ compute.Function = (*Function)(nil)

func (b *Builder) newFunction(name string, parent *Function, text *stablehlo.Function) *Function {
	return &Function{
		Function: notimplemented.Function{ErrFn: notImplemented},
		b:        b, name: name, parent: parent, text: text, aliases: map[*value]*value{},
	}
}

func notImplemented(kind compute.OpType) error {
	why := "GoMLX's graph functions use other operations for it"
	if strings.HasPrefix(kind.String(), "Dynamic") {
		why = "it gives a shape that is not known before the program runs, expected fixed shapes"
	}
	return &Error{Operation: kind, Err: fmt.Errorf("%w: %s", compute.ErrNotImplemented, why)}
}

func (b *Builder) Main() compute.Function { return b.main }

// NewFunction returns a function for [Function.Call], which sees only its parameters. The name must be new.
func (b *Builder) NewFunction(name string) (compute.Function, error) {
	err := b.open()
	switch {
	case err != nil:
	case name == "" || name == compute.MainName:
		err = errors.New("expected its own name")
	case slices.ContainsFunc(b.functions, func(f *Function) bool { return f.name == name }):
		err = errors.New("a function of this name already exists")
	}
	if err != nil {
		return nil, fmt.Errorf("hlo: new function %q: %w", name, err)
	}
	f := b.newFunction(name, nil, b.root.Closure())
	f.text.Name = fmt.Sprintf("f%d", len(b.functions))
	b.functions = append(b.functions, f)
	return f, nil
}

// Closure's functions are for [Function.While], [Function.If] or [Function.Sort]. They can use values of the function
// with this operation: GoMLX makes all closures in main.
func (f *Function) Closure() (compute.Function, error) {
	if err := f.b.open(); err != nil {
		return nil, fmt.Errorf("hlo: closure: %w", err)
	}
	return f.b.newFunction("", f, f.b.root.Closure()), nil
}

func (f *Function) Name() string { return f.name }

func (f *Function) Builder() compute.Builder { return f.b }

func (f *Function) Parent() compute.Function {
	if f.parent == nil {
		return nil
	}
	return f.parent
}

func (f *Function) Shape(x compute.Value) (shapes.Shape, error) { return f.b.OpShape(x) }

func (f *Function) String() string {
	if f.parent != nil {
		return "a closure"
	}
	return fmt.Sprintf("function %q", f.name)
}

// Parameter adds an input, in the order of feeding. With a nil sharding, an input of main is whole on each device.
// Closures take no shardings.
func (f *Function) Parameter(name string, shape shapes.Shape, sharding *compute.ShardingSpec) (compute.Value, error) {
	made, err := f.emitOne(compute.OpTypeParameter, nil, func([]*value) (*value, error) {
		if err := checkShape(shape); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		if f.parent != nil && sharding != nil {
			return nil, fmt.Errorf("%q: a closure's parameter with a sharding, expected none", name)
		}
		split, err := f.b.sharding(sharding, shape, false)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		if f != f.b.main {
			f.in = append(f.in, split)
			return f.text.Input(toXLA(shape))
		}
		for i, p := range f.b.parameters {
			if p.Name == name {
				return nil, fmt.Errorf("parameter %d has the name %q already", i, name)
			}
		}
		// Names of variables may differ only in characters that MLIR refuses.
		v, err := f.text.NamedInput(parameterName(len(f.b.parameters)), toXLA(shape))
		if err != nil {
			return nil, err
		}
		f.b.cutBy(split, v)
		f.b.parameters = append(f.b.parameters, Parameter{Name: name, Shape: shapeOf(v), split: split})
		return v, nil
	})
	if o, ok := made.(*op); ok && f.parent != nil {
		f.params = append(f.params, o)
	}
	return made, err
}

// Return ends the function with one output or more. shardings is nil or has an entry, possibly nil, per output.
func (f *Function) Return(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
	if err := f.finish(outputs, shardings); err != nil {
		return fmt.Errorf("hlo: return of %s: %w", f, err)
	}
	return nil
}

func (f *Function) finish(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
	results, err := f.values(outputs)
	switch {
	case err != nil:
		return err
	case len(results) == 0:
		return errors.New("there are no outputs; a function needs one at least")
	case len(shardings) != 0 && len(shardings) != len(results):
		return fmt.Errorf("there are %d outputs and %d shardings; expected one for each output, or none", len(results), len(shardings))
	}
	splits := make([]*shardy.ShardingSpec, len(results))
	for i, sharding := range shardings {
		if sharding != nil && f.parent != nil {
			return fmt.Errorf("output %d of a closure has a sharding, expected none", i)
		}
		if splits[i], err = f.b.sharding(sharding, shapeOf(results[i]), true); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	if f.parent != nil {
		err = f.text.Return(results...)
	}
	f.outputs, f.out, f.returned, f.text.Outputs = results, splits, err == nil, results
	return err
}

func (f *Function) Call(target compute.Function, inputs ...compute.Value) ([]compute.Value, error) {
	return f.emitList(compute.OpTypeCall, inputs, func(v []*value) ([]*value, error) {
		callee, err := f.finished("the function", target)
		switch {
		case err != nil:
			return nil, err
		case callee.parent != nil || callee == f.b.main:
			return nil, fmt.Errorf("the function is %s, expected one of NewFunction", callee)
		}
		if err := sameShapes(callee.String()+" takes", shapesOf(callee.text.Inputs), "operands", shapesOf(v)); err != nil {
			return nil, err
		}
		f.called = append(f.called, callee)
		if len(v) > 0 {
			return stablehlo.Call(callee.text, v...)
		}
		// go-xla finds the caller through an operand.
		none, err := scalar(f.text, dtypes.Bool, 0)
		if err != nil {
			return nil, err
		}
		results, err := stablehlo.Call(&stablehlo.Function{Name: callee.text.Name, Inputs: []*value{none}, Outputs: callee.outputs}, none)
		if err != nil {
			return nil, err
		}
		last := len(f.text.Statements) - 1
		f.text.Statements[last].Inputs = nil
		f.text.Statements = slices.Delete(f.text.Statements, last-1, last)
		return results, nil
	})
}

func (f *Function) While(cond, body compute.Function, initialState ...compute.Value) ([]compute.Value, error) {
	if c, ok := body.(*Function); ok && c != nil && c.branch {
		return f.chosen(c, initialState)
	}
	return f.emitList(compute.OpTypeWhile, initialState, func(v []*value) ([]*value, error) {
		if len(v) == 0 {
			return nil, errors.New("no state, expected one value at least")
		}
		state := shapesOf(v)
		condition, err := f.region("the condition", cond, state, []shapes.Shape{shapes.Make(dtypes.Bool)})
		if err != nil {
			return nil, err
		}
		step, err := f.region("the body", body, state, state)
		if err != nil {
			return nil, err
		}
		return stablehlo.While(condition, step, v...)
	})
}

// Branch marks the closure of parameter o as a branch. A While with this body becomes a stablehlo.case, which XLA, in
// contrast to an If, never turns into a select. It runs the true branch of one of the closure's Ifs: the first input,
// an int32 scalar, is its index; out of range is the last.
func (o *op) Branch() { o.in.branch = true }

func (f *Function) chosen(c *Function, inputs []compute.Value) ([]compute.Value, error) {
	given, err := f.b.known(inputs)
	if err == nil && (len(c.choices) == 0 || len(given) != len(c.params)) {
		err = fmt.Errorf("%d inputs for %d closures, expected %d inputs and one closure at least", len(given), len(c.choices), len(c.params))
	}
	if err != nil {
		return nil, &Error{Operation: compute.OpTypeIf, Err: err}
	}
	before := f.b.instead
	f.b.instead = maps.Clone(before)
	if f.b.instead == nil {
		f.b.instead = map[*value]*op{}
	}
	defer func() { f.b.instead = before }()
	for i, p := range c.params {
		f.b.instead[p.value] = given[i]
	}
	return f.emitList(compute.OpTypeIf, inputs[:1], func(v []*value) ([]*value, error) {
		if s := shapeOf(v[0]); s.DType != dtypes.Int32 || s.Rank() != 0 {
			return nil, fmt.Errorf("number of shape %s, expected an int32 scalar", s)
		}
		regions := make([]*stablehlo.Function, len(c.choices))
		var gives []shapes.Shape
		for i, choice := range c.choices {
			if regions[i], err = f.region(fmt.Sprintf("branch %d", i), choice, nil, gives); err != nil {
				return nil, err
			}
			gives = shapesOf(regions[i].Outputs)
		}
		// go-xla has no case.
		yes, err := f.text.NamedInput("yes", toXLA(shapes.Make(dtypes.Bool)))
		if err != nil {
			return nil, err
		}
		f.text.Inputs = f.text.Inputs[:len(f.text.Inputs)-1]
		results, err := stablehlo.If(yes, regions[0], regions[len(regions)-1])
		if err != nil {
			return nil, err
		}
		s := f.text.Statements[len(f.text.Statements)-1]
		s.Inputs, s.FunctionParameters, s.FunctionParametersNames = v, regions, nil
		for i := range regions {
			s.FunctionParametersNames = append(s.FunctionParametersNames, fmt.Sprintf("branch%d", i))
		}
		for s.OpType = 0; s.OpType.ToStableHLO() != "stablehlo.case"; s.OpType++ {
			if s.OpType > 1000 {
				return nil, errors.New("go-xla has no stablehlo.case")
			}
		}
		return results, nil
	})
}

// If runs one of two closures without parameters and with equal output shapes.
func (f *Function) If(pred compute.Value, trueBranch, falseBranch compute.Function) ([]compute.Value, error) {
	if f.parent != nil {
		f.choices = append(f.choices, trueBranch)
	}
	return f.emitList(compute.OpTypeIf, []compute.Value{pred}, func(v []*value) ([]*value, error) {
		if s := shapeOf(v[0]); s.DType != dtypes.Bool || s.Rank() != 0 {
			return nil, fmt.Errorf("condition of shape %s, expected a bool scalar", s)
		}
		onTrue, err := f.region("the true branch", trueBranch, nil, nil)
		if err != nil {
			return nil, err
		}
		onFalse, err := f.region("the false branch", falseBranch, nil, shapesOf(onTrue.Outputs))
		if err != nil {
			return nil, err
		}
		return stablehlo.If(v[0], onTrue, onFalse)
	})
}

func (f *Function) finished(role string, argument compute.Function) (*Function, error) {
	g, ok := argument.(*Function)
	switch {
	case !ok || g == nil:
		return nil, fmt.Errorf("%s is %T, expected a function that this builder made", role, argument)
	case g.b != f.b:
		return nil, fmt.Errorf("%s is of builder %q, this is %q", role, g.b.name, f.b.name)
	case !g.returned:
		return nil, fmt.Errorf("%s has not returned yet: call its Return first", role)
	}
	return g, nil
}

// A nil gives allows any outputs.
func (f *Function) region(role string, argument compute.Function, takes, gives []shapes.Shape) (*stablehlo.Function, error) {
	c, err := f.finished(role, argument)
	if err != nil {
		return nil, err
	}
	if c.parent == nil {
		return nil, fmt.Errorf("%s is %s, expected a closure", role, c)
	}
	if err := sameShapes(role+" takes", shapesOf(c.text.Inputs), "expected", takes); err != nil {
		if len(c.text.Inputs) > len(takes) {
			err = fmt.Errorf("%w: variables and random numbers that are first used in a closure become its parameters: use them before the closure is made", err)
		}
		return nil, err
	}
	if gives != nil {
		if err := sameShapes(role+" gives", shapesOf(c.outputs), "expected", gives); err != nil {
			return nil, err
		}
	}
	names := map[string]*value{}
	for _, o := range c.captured {
		to := o
		if other := f.b.instead[o.value]; other != nil {
			to = other
		}
		v, err := f.value(to)
		if err != nil {
			return nil, fmt.Errorf("%s uses a value from outside: %w", role, err)
		}
		if to != o {
			names[o.value.String()] = v
		}
		f.takes = append(f.takes, taken{o, to})
	}
	f.called = append(f.called, c)
	region := *c.text
	region.Parent = f.text
	if len(names) > 0 {
		region.Statements = renamed(region.Statements, names)
	}
	return &region, nil
}

func sameShapes(a string, have []shapes.Shape, b string, want []shapes.Shape) error {
	if !slices.EqualFunc(have, want, shapes.Shape.Equal) {
		return fmt.Errorf("%s (%s), %s (%s)", a, shapeList(have), b, shapeList(want))
	}
	return nil
}

func reach(list []*Function, seen map[*Function]bool) (called []*Function) {
	for _, f := range list {
		if seen[f] {
			continue
		}
		seen[f] = true
		if f.parent == nil {
			called = append(called, f)
		}
		called = append(called, reach(f.uses, seen)...)
	}
	return called
}

func (f *Function) definition(live map[int]bool) (string, error) {
	body, err := bodyText(f.live(live), f.outputs)
	inputs, outputs := make([]string, len(f.text.Inputs)), make([]string, len(f.outputs))
	for i, v := range f.text.Inputs {
		inputs[i] = fmt.Sprintf("%s: %s%s", v, v.Shape().ToStableHLO(), attributes(f.in[i], v.Shape()))
	}
	for i, v := range f.outputs {
		outputs[i] = v.Shape().ToStableHLO() + attributes(f.out[i], v.Shape())
	}
	return functionText("private", f.text.Name, inputs, outputs, body), err
}

func definitions(called []*Function, live map[int]bool) ([]string, error) {
	var texts []string
	for _, f := range called {
		text, err := f.definition(live)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func (f *Function) live(numbers map[int]bool) []*stablehlo.Statement {
	used := map[string]bool{} // by name: closures have aliases
	for _, v := range f.outputs {
		used[v.String()] = true
	}
	return f.b.live(f.text.Statements, used, numbers)
}

// Only statements that lead to the used values, or to what a region returns, are live: GoMLX differentiates for all
// operands, and a gradient builds again what package autodiff has saved, as the last operand of a select by true.
func (b *Builder) live(statements []*stablehlo.Statement, used map[string]bool, numbers map[int]bool) []*stablehlo.Statement {
	var kept []*stablehlo.Statement
	for _, s := range slices.Backward(statements) {
		if len(s.Outputs) > 0 && !slices.ContainsFunc(s.Outputs, func(v *value) bool { return used[v.String()] }) {
			continue
		}
		lean := *s
		lean.FunctionParameters = slices.Clone(s.FunctionParameters)
		switch kind := s.OpType.ToStableHLO(); {
		case kind == "stablehlo.select" && b.isTrue(s.Inputs[0]):
			lean.Inputs = []*value{s.Inputs[0], s.Inputs[1], s.Inputs[1]}
		case kind == "stablehlo.case":
			lean.Outputs = slices.DeleteFunc(slices.Clone(s.Outputs), func(v *value) bool { return !used[v.String()] })
		}
		for _, v := range lean.Inputs {
			used[v.String()] = true
		}
		for _, v := range lean.Outputs {
			if n, err := strconv.Atoi(v.String()[1:]); err == nil {
				numbers[n] = true
			}
		}
		for i, r := range s.FunctionParameters {
			region, body := *r, slices.Clone(r.Statements)
			if end := len(body) - 1; len(lean.Outputs) < len(s.Outputs) {
				returned := *body[end]
				returned.Inputs = nil
				for k, v := range s.Outputs {
					if slices.Contains(lean.Outputs, v) {
						returned.Inputs = append(returned.Inputs, body[end].Inputs[k])
					}
				}
				body[end] = &returned
			}
			region.Statements = b.live(body, used, numbers)
			lean.FunctionParameters[i] = &region
		}
		kept = append(kept, &lean)
	}
	slices.Reverse(kept)
	return kept
}

func (b *Builder) isTrue(v *value) bool {
	zero, literal := b.zeros[v]
	return literal && zero < 0 && classOf(v) == boolean && v.Shape().Rank() == 0
}
