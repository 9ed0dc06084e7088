package loop

import (
	"fmt"
	"strings"
)

// noter is told what a run turns to.
type noter interface{ note(step int64, what doing) }

// doing is kept as it comes and made a text only when there is an error, because it is set several times a turn.
type doing struct {
	when  *Schedule // nil for what has none
	name  string
	watch *watching
}

var doingData = doing{name: "data"}

func (d doing) String() string {
	switch {
	case d.watch != nil:
		return d.watch.label()
	case d.when != nil:
		return label(*d.when, d.name)
	}
	return d.name
}

func (r *run[S, B]) at(d doing) {
	r.doing = d
	if r.noters != nil {
		r.tell()
	}
}

// tell is apart from at, which is called several times a turn and so must be cheap.
func (r *run[S, B]) tell() {
	for _, n := range r.noters {
		n.note(r.elapsed.Steps, r.doing)
	}
}

// wrap says where in the run an error came up.
func (r *run[S, B]) wrap(err error) error {
	step := r.elapsed.Steps
	if r.doing == doingData && !r.over {
		step += max(int64(len(r.blocks.turns)), 1) // the one that could not be made, behind those that wait
	}
	where := r.doing.String()
	if _, ok := err.(pointed); ok && r.doing.name != "" && r.doing.when != nil && r.doing.when.name == EachStep.name {
		where = r.doing.name // a step that knows its point is known by its name
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
