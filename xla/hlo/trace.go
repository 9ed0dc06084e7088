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
	open   bool // barriers are parameters
	values map[*value]bool
}

// BeginTrace begins the parameters of a body: each is an OptimizationBarrier.
func (b *Builder) BeginTrace() { b.traces = append(b.traces, trace{true, map[*value]bool{}}) }

// TraceBody ends the parameters.
func (b *Builder) TraceBody() { b.traces[len(b.traces)-1].open = false }

// EndTrace ends the body. To use from here on what was computed from its parameters is [ErrTraced].
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
	for i := range b.traces {
		t := &b.traces[i]
		traced := t.open && kind == compute.OpTypeOptimizationBarrier
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
