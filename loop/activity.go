package loop

import (
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/internal/abilities"
)

type activity struct {
	of   fmt.Stringer
	name string
	task bool
}

var atData = activity{name: "data"}

func ofHook(h *hook) activity { return activity{of: h, name: h.Name} }

func (a activity) String() string {
	if a.of == nil {
		return a.name
	}
	return a.of.String()
}

func (a activity) public() abilities.Activity {
	kind := ""
	if a.of != nil {
		kind = "callback"
	}
	if a.task {
		kind = "task"
	}
	return abilities.Activity{Kind: kind, Name: a.name, Of: a.of}
}

func (r *run[S, B]) at(a activity) {
	r.activity = a
	if r.observers != nil {
		r.callObservers()
	}
}

func (r *run[S, B]) callObservers() {
	step, now := r.elapsed.Steps, r.activity
	if now == atData {
		step = r.nextStep()
	}
	for _, h := range r.observers {
		r.activity = ofHook(h)
		h.observer.At(step, now.public())
	}
	r.activity = now
}

func (r *run[S, B]) nextStep() int64 {
	if r.over {
		return r.elapsed.Steps
	}
	return r.elapsed.Steps + max(int64(len(r.blocks.batches)), 1)
}

func (r *run[S, B]) wrap(err error) error {
	step := r.elapsed.Steps
	if r.activity == atData {
		step = r.nextStep()
	}
	where := r.activity.String()
	if _, ok := err.(withPoint); ok && r.activity.task && where == EachStep.name+": "+r.activity.name {
		where = r.activity.name
	}
	return &runError{fmt.Sprintf("%sstep %d: %s", r.stage, step, where), err}
}

func (r *run[S, B]) errorAt(where string, err error) error {
	return &runError{fmt.Sprintf("%sstep %d: %s", r.stage, r.elapsed.Steps, where), err}
}

type runError struct {
	where string
	err   error
}

func (p *runError) Error() string { return "loop: " + p.Point() }
func (p *runError) Unwrap() error { return p.err }

func (p *runError) Point() string {
	last := p.where[strings.LastIndex(p.where, " ")+1:]
	return p.where + ": " + strings.TrimPrefix(point(p.err), last+": ")
}

type withPoint interface{ Point() string }

func point(err error) string {
	if p, ok := err.(withPoint); ok {
		return p.Point()
	}
	return strings.TrimPrefix(err.Error(), "loop: ")
}
