package loop

import (
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/internal/abilities"
)

// activity is what a run is doing: running a task or a callback, or waiting for data. Its text is made only when it
// is asked for, because an activity is set several times an iteration.
type activity struct {
	of   fmt.Stringer // the task or the hook, nil if it is none
	name string
	task bool
}

var atData = activity{name: "data"}

func ofHook(h *hook) activity { return activity{of: h, name: h.Name} }

// String is the schedule, and the name if there is one, as in errors; or "data".
func (a activity) String() string {
	if a.of == nil {
		return a.name
	}
	return a.of.String()
}

// public is the activity as observers are given it.
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

// callObservers stands apart from at, which is called several times a turn and so must be cheap.
func (r *run[S, B]) callObservers() {
	step, now := r.elapsed.Steps, r.activity
	if now == atData {
		step = r.nextStep()
	}
	for _, h := range r.observers {
		r.activity = ofHook(h) // for a panic in it
		h.observer.At(step, now.public())
	}
	r.activity = now
}

// nextStep is the step that the next batch is for.
func (r *run[S, B]) nextStep() int64 {
	if r.over {
		return r.elapsed.Steps
	}
	return r.elapsed.Steps + max(int64(len(r.blocks.batches)), 1)
}

// wrap adds to an error where in the run it came up.
func (r *run[S, B]) wrap(err error) error {
	step := r.elapsed.Steps
	if r.activity == atData {
		step = r.nextStep()
	}
	where := r.activity.String()
	if _, ok := err.(withPoint); ok && r.activity.task && where == EachStep.name+": "+r.activity.name {
		where = r.activity.name // a step whose error has a Point is named by its name alone
	}
	return &runError{fmt.Sprintf("%sstep %d: %s", r.stage, step, where), err}
}

func (r *run[S, B]) errorAt(where string, err error) error {
	return &runError{fmt.Sprintf("%sstep %d: %s", r.stage, r.elapsed.Steps, where), err}
}

// runError is an error with where it came up in a run. If the error has a method Point, which leaves its package's
// name and its work out, the message names one package, this one.
type runError struct {
	where string
	err   error
}

func (p *runError) Error() string { return "loop: " + p.Point() }
func (p *runError) Unwrap() error { return p.err }

// Point is the error without the name of this package.
func (p *runError) Point() string {
	last := p.where[strings.LastIndex(p.where, " ")+1:] // "data", and an error of package data begins with that too
	return p.where + ": " + strings.TrimPrefix(point(p.err), last+": ")
}

type withPoint interface{ Point() string }

func point(err error) string {
	if p, ok := err.(withPoint); ok {
		return p.Point()
	}
	return strings.TrimPrefix(err.Error(), "loop: ")
}
