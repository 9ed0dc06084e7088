package loop

import "fmt"

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
	if r.doing == doingData {
		step += max(int64(len(r.blocks.turns)), 1) // the one that could not be made, behind those that wait
	}
	return fmt.Errorf("loop: %sstep %d: %s: %w", r.place, step, r.doing, err)
}

func (r *run[S, B]) errorAt(where string, err error) error {
	return fmt.Errorf("loop: %sstep %d: %s: %w", r.place, r.elapsed.Steps, where, err)
}
