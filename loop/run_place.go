package loop

import (
	"fmt"
	"strings"
)

// Activity is what a run is at: a task, a callback, the data. It is kept as it comes and made a text only when somebody
// asks, because it is set several times a turn.
type Activity struct {
	when   *Schedule // nil for what has none
	name   string
	beside *beside
}

var atData = Activity{name: "data"}

// Kind is "task" or "callback", and empty for the data and what a run does by itself.
func (a Activity) Kind() string {
	switch {
	case a.beside != nil:
		return "callback"
	case a.when != nil:
		return "task"
	}
	return ""
}

// String is the schedule, and the name if there is one, as errors have it; or "data".
func (a Activity) String() string {
	switch {
	case a.beside != nil:
		return a.beside.String()
	case a.when != nil:
		return label(*a.when, a.name)
	}
	return a.name
}

func (r *run[S, B]) at(a Activity) {
	r.activity = a
	if r.observers != nil {
		r.tellObservers()
	}
}

// tellObservers is apart from at, which is called several times a turn and so must be cheap.
func (r *run[S, B]) tellObservers() {
	step := r.elapsed.Steps
	if r.activity == atData {
		step = r.wanted()
	}
	for _, o := range r.observers {
		o.At(step, r.activity)
	}
}

// wanted is the step of the turn that the next batch is for, behind those that wait.
func (r *run[S, B]) wanted() int64 {
	if r.over {
		return r.elapsed.Steps
	}
	return r.elapsed.Steps + max(int64(len(r.blocks.turns)), 1)
}

// wrap says where in the run an error came up.
func (r *run[S, B]) wrap(err error) error {
	step := r.elapsed.Steps
	if r.activity == atData {
		step = r.wanted()
	}
	where := r.activity.String()
	if _, ok := err.(pointed); ok && r.activity.name != "" && r.activity.when != nil && r.activity.when.name == EachStep.name {
		where = r.activity.name // a step that knows its point is known by its name
	}
	return &placed{fmt.Sprintf("%sstep %d: %s", r.place, step, where), err}
}

func (r *run[S, B]) errorAt(where string, err error) error {
	return &placed{fmt.Sprintf("%sstep %d: %s", r.place, r.elapsed.Steps, where), err}
}

// placed is an error with its place in a run. The names of packages stand once in it, this one's, if the error can tell its point: what is
// left without the package that it comes from and without the work, which the place names.
type placed struct {
	at  string
	err error
}

func (p *placed) Error() string { return "loop: " + p.Point() }
func (p *placed) Unwrap() error { return p.err }

// Point is the error without the name of this package.
func (p *placed) Point() string { return p.at + ": " + point(p.err) }

type pointed interface{ Point() string }

func point(err error) string {
	if p, ok := err.(pointed); ok {
		return p.Point()
	}
	return strings.TrimPrefix(err.Error(), "loop: ")
}
