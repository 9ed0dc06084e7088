package hlo

import (
	"errors"

	"github.com/gomlx/compute"
)

// ErrTraced: a value that was made in the body of a loop or a branch, while that was traced, was used outside of it.
var ErrTraced = errors.New("the value was made in the body of a loop or of a branch and is not there outside of it: have the body return it")

// trace knows what was computed from the parameters of a body. The body is traced in main, and then written again in a
// function of its own: what main has of it is of no use.
type trace struct {
	open, whole bool // open: barriers are parameters
	values      map[*value]bool
}

// BeginTrace begins the parameters of a body: each is an OptimizationBarrier. What is computed from them is the body's;
// if whole is set, all that the body computes is, but for constants.
func (b *Builder) BeginTrace(whole bool) {
	b.traces = append(b.traces, trace{true, whole, map[*value]bool{}})
}

// TraceBody ends the parameters.
func (b *Builder) TraceBody() { b.traces[len(b.traces)-1].open = false }

// EndTrace ends the body. To use from here on what is the body's is [ErrTraced].
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

// trace notes what an operation made.
func (b *Builder) trace(kind compute.OpType, operands []compute.Value, results []*op) {
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
				t.values[o.value] = true
			}
		}
	}
}
