package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Report is what a watcher sees, after the tasks of a turn.
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
	state holder
}

// holder has the state of a run, whatever its type. Only options of this package put another state into it.
type holder interface {
	get() any
	place() any // a pointer to where the state lies
	set(state any) error
}

// State is the state of the run as the tasks of the turn left it, nil if the report does not come from a run. It is to
// be looked at, not to be changed.
func (r Report) State() any {
	if r.state == nil {
		return nil
	}
	return r.state.get()
}

// WithState is the report with a state, for loops written by hand: what is looked at and restored is *state then.
func WithState[S any](r Report, state *S) Report {
	r.state = held[S]{state}
	return r
}

// held is a state that lies in a variable.
type held[S any] struct{ at *S }

func (h held[S]) get() any   { return *h.at }
func (h held[S]) place() any { return h.at }

func (h held[S]) set(state any) error {
	s, ok := state.(S)
	if !ok && state != nil {
		return fmt.Errorf("a state of type %T cannot take the place of one of type %T", state, *h.at)
	}
	*h.at = s
	return nil
}

// as asks a value for an interface that it may have, or may not: the value itself, which may be a pointer or stand in an
// interface, or else the place where it lies, whose methods are those with a pointer receiver too.
func as[I any](value, place any) (found I, ok bool) {
	if found, ok = value.(I); !ok {
		found, ok = place.(I)
	}
	return found, ok
}

var errNoState = errors.New("the report has no state; give it one with WithState")

// Ending is what a watcher sees when the run is over.
type Ending struct {
	Report
	Reason Reason
	// Err is the error of the run, nil if it went well.
	Err error
	// Partial tells that the last turn was begun and counts, but was not made to its end: an evaluation behind a training step
	// was cancelled, say. A state saved now would go on without the rest of that turn.
	Partial bool
}

// Watcher looks at a run and changes nothing. Returning [ErrStop] ends the run after the turn.
type Watcher func(ctx context.Context, report Report) error

// Attendant is a watcher that also wants to know when a run is over. Its End is always called, whatever happened,
// the last attendant's first.
type Attendant interface {
	Watch(ctx context.Context, report Report) error
	End(ctx context.Context, ending Ending) error
}

type attendFunc Watcher

func (f attendFunc) Watch(ctx context.Context, r Report) error { return f(ctx, r) }
func (f attendFunc) End(context.Context, Ending) error         { return nil }

// Watch runs a watcher on a schedule, after the tasks of the turn.
func Watch(when Schedule, watcher Watcher) Option {
	return Attend("", when, startWatcher(watcher))
}

// Attend has an attendant made when a run starts, so that one option serves any number of runs. The name stands in
// errors and in the plan.
func Attend(name string, when Schedule, start func() Attendant) Option {
	return watching{name: name, when: when, start: start}.option()
}

// WatchEntry runs a watcher in each turn in which a value was logged under a name (see [Logs.Get]): "test.loss" after
// each evaluation, not in the turns between. Where nothing has logged the name although every task of the loop had its
// turn, the run ends with an error that lists what there is.
func WatchEntry(entry string, watcher Watcher) Option {
	return AttendEntry("", entry, startWatcher(watcher))
}

// AttendEntry is [Attend] for the turns in which a value was logged under a name, see [WatchEntry].
func AttendEntry(name, entry string, start func() Attendant) Option {
	w := watching{name: name, entry: entry, when: EachStep.AndAtStart().AndAtEnd(), start: start}
	if entry == "" {
		w.err = fmt.Errorf("%w: no entry to watch", ErrName)
	}
	return w.option()
}

// AfterAll has the watchers of options look behind all other watchers of the run, wherever they stand among the options,
// and so hear of the end before them: for what must see a turn as it was left, as a checkpoint must, because other watchers
// may change the learning rate or put an earlier state back.
func AfterAll(options ...Option) Option {
	options = slices.Clone(options)
	return func(s *settings) {
		before := len(s.watchers)
		for _, o := range options {
			if o != nil {
				o(s)
			}
		}
		for i := range s.watchers[before:] {
			s.watchers[before+i].last = true
		}
	}
}

func startWatcher(w Watcher) func() Attendant {
	if w == nil {
		return nil
	}
	return func() Attendant { return attendFunc(w) }
}

type watching struct {
	name string
	when Schedule
	// entry is the name that must have been logged in the turn, "" for any turn.
	entry string
	// monitor tells that it follows the values of the entry; seldom that it does so where when is due alone.
	monitor, seldom bool
	// first watchers look before the turn is committed, and before all others.
	first bool
	// last watchers look behind all others.
	last  bool
	start func() Attendant
	err   error
	it    Attendant // made when the run starts
}

func (w watching) option() Option {
	if w.start == nil {
		w.err = errNoFunction
	}
	return func(s *settings) { s.watchers = append(s.watchers, w) }
}

func (w *watching) label() string {
	switch {
	case w.entry == "":
		return label(w.when, w.name)
	case w.name == "":
		return "on each " + w.entry
	}
	return "on each " + w.entry + ": " + w.name
}
