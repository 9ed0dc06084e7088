package hlo

import (
	"errors"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/stablehlo"
)

// ErrTraced reports a value of a loop's or a branch's traced body outside the body.
var ErrTraced = errors.New("the value was made in the body of a loop or of a branch and does not exist outside of it: return it from the body")

// a body's values, which main must not use: a function writes the body again
type trace struct {
	open, whole bool
	values      map[*value]bool
}

// BeginTrace starts a body's trace. Until [Builder.TraceBody], each OptimizationBarrier is a parameter. Values that
// depend on one belong to the body; with whole, all but constants do.
func (b *Builder) BeginTrace(whole bool) {
	b.traces = append(b.traces, trace{true, whole, map[*value]bool{}})
}

// TraceBody ends the parameters.
func (b *Builder) TraceBody() { b.traces[len(b.traces)-1].open = false }

// EndTrace ends the body: later use of its values returns [ErrTraced].
func (b *Builder) EndTrace() {
	last := len(b.traces) - 1
	if b.left == nil {
		b.left = map[*value]bool{}
	}
	for v := range b.traces[last].values {
		b.left[v] = true
	}
	b.traces = b.traces[:last]
}

func (b *Builder) trace(kind compute.OpType, operands []compute.Value, results []*op) {
	if len(results) > 0 && len(results[0].takes) > 0 {
		operands = append(slices.Clone(operands), results[0].Captured()...)
	}
	constant := len(operands) > 0 && kind != compute.OpTypeOptimizationBarrier || kind == compute.OpTypeConstant || kind == compute.OpTypeIota
	for _, x := range operands {
		o, ok := x.(*op)
		constant = constant && ok && b.fixed[o.value]
	}
	for _, o := range results {
		if constant {
			b.fixed[o.value] = true
		}
	}
	for i := range b.traces {
		t := &b.traces[i]
		traced := kind == compute.OpTypeOptimizationBarrier && t.open || !constant && kind != compute.OpTypeParameter && !t.open && t.whole
		for _, x := range operands {
			o, ok := x.(*op)
			traced = traced || ok && t.values[o.value]
		}
		if traced {
			for _, o := range results {
				if !slices.ContainsFunc(operands, o.hands) {
					t.values[o.value] = true
				}
			}
		}
	}
}

func (o *op) hands(operand compute.Value) bool {
	of, ok := operand.(*op)
	return ok && of.value == o.value
}

type taken struct{ made, now *op }

func (o *op) Captured() []compute.Value {
	list := make([]compute.Value, len(o.takes))
	for i, t := range o.takes {
		list[i] = t.now
	}
	return list
}

// Instead makes the operation's closures, when written again, capture to[i] instead of from[i], until end is called.
func (o *op) Instead(from, to []compute.Value) (end func()) {
	b := o.in.b
	before := b.instead
	b.instead = map[*value]*op{}
	for _, t := range o.takes {
		b.instead[t.made.value] = t.now
		if i := slices.IndexFunc(from, func(v compute.Value) bool { return v == t.now }); i >= 0 {
			b.instead[t.made.value] = to[i].(*op)
		}
	}
	return func() { b.instead = before }
}

func renamed(statements []*stablehlo.Statement, names map[string]*value) []*stablehlo.Statement {
	list := make([]*stablehlo.Statement, len(statements))
	for i, s := range statements {
		again := *s
		again.Inputs = slices.Clone(s.Inputs)
		for k, v := range again.Inputs {
			if other, ok := names[v.String()]; ok {
				again.Inputs[k] = other
			}
		}
		again.FunctionParameters = make([]*stablehlo.Function, len(s.FunctionParameters))
		for k, region := range s.FunctionParameters {
			inner := *region
			inner.Statements = renamed(region.Statements, names)
			again.FunctionParameters[k] = &inner
		}
		list[i] = &again
	}
	return list
}
