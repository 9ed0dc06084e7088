package loop

import (
	"context"
	"errors"
	"fmt"
)

// Report is what a callback sees, after the tasks of a turn.
type Report struct {
	Elapsed Elapsed
	// Logs is what was logged in this turn.
	Logs Logs
	// Latest has the newest value of each name that was logged in this run, in this turn or an earlier one.
	Latest  Logs
	History *History
	// From is where this run began: zero, or what the option [From] says.
	From Elapsed
	// Until is the end of the run, nil if none was set.
	Until Period
	// Stop is what asked for the end of the run up to now, as [Result].Stop will have it; nil if nobody did.
	Stop error
	// Ahead is how many batches were taken from the data and are not in the state: a place that is read off the data is so far
	// ahead of it. It is 0 but where a step was broken off or asked to stop inside of a block.
	Ahead int64
	state State
}

// State is the state of the run as the tasks of the turn left it, nil if the report does not come from a run. It is to
// be looked at; what changes it is a [Changer].
func (r Report) State() any { return r.state.Get() }

func (r Report) held() State { return r.state }

// WithState is the report with the state at a place, for loops written by hand.
func WithState[S any](r Report, state *S) Report {
	r.state = StateAt(state)
	return r
}

// Detached is a report that stays as it is when the loop goes on, to be read on another goroutine. It has no History and no
// State, which belong to the loop.
func (r Report) Detached() Report {
	r.Logs, r.Latest = r.Logs.Clone(), r.Latest.Clone()
	r.History, r.state = nil, State{}
	return r
}

// Ending is what a callback sees when the run is over.
type Ending struct {
	Report
	Reason Reason
	// Err is the error of the run, nil if it went well.
	Err error
	// Partial tells that the last turn was begun and counts, but was not made to its end: an evaluation behind a training step
	// was cancelled, say. A state saved now would go on without the rest of that turn.
	Partial bool
}

// Normal tells that the run ended as it was to: its data was over, [Until] was reached, or somebody asked to stop.
func (e Ending) Normal() bool {
	return e.Err == nil && (e.Reason == DataEnded || e.Reason == UntilReached || e.Reason == Stopped)
}

// Beginning is what a callback is started with.
type Beginning struct {
	// From is where the run begins, and History has the rows of the earlier run that it goes on from; nil if there is none.
	From    Elapsed
	History *History
	// Until is the end of the run, nil if none was set.
	Until Period
	// MonitorsWhen is the schedule of the option of that name, nil without it.
	MonitorsWhen *Schedule
	state        State
}

// State is the state that the run begins with, nil where a loop written by hand starts the callback.
func (b Beginning) State() any { return b.state.Get() }

func (b Beginning) held() State { return b.state }

// State is the place where the state of a run lies. The zero State is of no run.
type State struct{ at holder }

// StateAt is the state in a variable, for loops written by hand.
func StateAt[S any](at *S) State { return State{variable[S]{at}} }

// Get is the state, nil if there is none.
func (s State) Get() any {
	if s.at == nil {
		return nil
	}
	return s.at.get()
}

// Set puts another state there. It is an error if that is of another type.
func (s State) Set(state any) error {
	if s.at == nil {
		return ErrNoState
	}
	return s.at.set(state)
}

// ErrNoState: what needs the state was given none, in a loop written by hand.
var ErrNoState = errors.New("there is no state: give a Changer one made by loop.StateAt, and a report by loop.WithState")

// holder has a state, whatever its type.
type holder interface {
	get() any
	pointer() any // to where the state lies
	set(state any) error
}

type variable[S any] struct{ at *S }

func (v variable[S]) get() any     { return *v.at }
func (v variable[S]) pointer() any { return v.at }

func (v variable[S]) set(state any) error {
	s, ok := state.(S)
	if !ok && state != nil {
		return fmt.Errorf("a state of type %T cannot take the place of one of type %T", state, *v.at)
	}
	*v.at = s
	return nil
}

func (s State) held() State { return s }

// StateAs asks the state of a [Report], an [Ending], a [Beginning], or a [State], for an interface: the value itself, which
// may be a pointer or stand in an interface, or else the place where it lies, whose methods are those with a pointer
// receiver too.
func StateAs[I any](of interface{ held() State }) (found I, ok bool) {
	s := of.held()
	if s.at == nil {
		return found, false
	}
	return as[I](s.at.get(), s.at.pointer())
}

func as[I any](value, pointer any) (found I, ok bool) {
	if found, ok = value.(I); !ok {
		found, ok = pointer.(I)
	}
	return found, ok
}

// Watcher looks at a run and changes nothing. Returning [ErrStop] ends the run after the turn.
type Watcher func(ctx context.Context, report Report) error
