package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Callback is an [Option] that is called after an iteration's tasks, in any number of runs. A hand-written loop calls
// Start, then Watch when due, then End.
type Callback struct {
	Name string
	// WhenRun, if set, computes When for each run.
	When    Schedule
	WhenRun func(Beginning) Schedule
	// Entry, if set, restricts the calls to iterations that logged this name ([Logs.Get]); When is then optional. A
	// run without such an entry ends with an error when all its tasks have run.
	Entry string
	// Needs are further names that some task must log.
	Needs []string
	// Monitor: the callback follows Entry; see [MonitorsWhen].
	Monitor bool
	// Order sorts a run's callbacks, default 0: they start and run from lowest to highest, and end in reverse; equal
	// ones in the options' order.
	Order int
	// AtRank0 runs the callback in rank 0 of a [Job] alone. It must not need the others, as reading a sharded state
	// does.
	AtRank0 bool
	// Changes allows changes of the state ([Report.SetState]): the callback runs before the row enters the history
	// and other callbacks run. It excludes AtRank0.
	Changes bool
	// An error of Start ends the run, [ErrStop] without an error before its first iteration.
	Start func(Beginning) (Attendant, error)
	// Err is a mistake that a run returns before anything starts.
	Err error
}

// Attendant is a [Callback] started for one run. Its optional method Interrupts() bool, which must be fast, asks for
// a call outside its schedule, as after a failed save. The run calls it after each iteration, or before a step that
// may wait in a block.
type Attendant interface {
	// Watch is called when due. An error ends the run, [ErrStop] after the iteration without one.
	Watch(ctx context.Context, report Report) error
	// End is called once, also after an error, with a context that does not end.
	End(ctx context.Context, ending Ending) error
}

// Watch returns a [Callback] that calls a function on a schedule.
func Watch(when Schedule, watch func(ctx context.Context, report Report) error) Callback {
	return Callback{When: when, Start: startWatch(watch)}
}

// WatchEntry returns a [Callback] that calls a function in each iteration that logged a name.
func WatchEntry(entry string, watch func(ctx context.Context, report Report) error) Callback {
	c := Callback{Entry: entry, When: everywhere, Start: startWatch(watch)}
	if entry == "" {
		c.Err = fmt.Errorf("%w: no entry to watch", records.ErrName)
	}
	return c
}

func startWatch(w attendFunc) func(Beginning) (Attendant, error) {
	if w == nil {
		return nil
	}
	return func(Beginning) (Attendant, error) { return w, nil }
}

type attendFunc func(context.Context, Report) error

func (f attendFunc) Watch(ctx context.Context, r Report) error { return f(ctx, r) }
func (f attendFunc) End(context.Context, Ending) error         { return nil }

func (c Callback) apply(s *settings) {
	if c.Start == nil && c.Err == nil {
		c.Err = errNoFunction
	}
	if c.Changes && c.AtRank0 {
		c.Err = errors.Join(c.Err, errors.New("a callback with Changes runs in all processes: leave AtRank0 out"))
	}
	c.Needs = slices.Clone(c.Needs)
	s.hooks = append(s.hooks, hook{Callback: c})
}

type hook struct {
	Callback
	number      int
	scheduled   bool // a monitor with MonitorsWhen
	attendant   Attendant
	interrupter abilities.Interrupter
	observer    abilities.Observer
	interrupted bool // in a job: it asks for a call
}

func (h *hook) kind() string {
	if h.Changes {
		return "change"
	}
	return "callback"
}

var everywhere = EachStep.AndAtStart().AndAtEnd()

func (h *hook) setSchedule(from Beginning) {
	switch {
	case h.Monitor && from.MonitorsWhen != nil:
		h.When, h.scheduled = from.MonitorsWhen.AndAtStart().AndAtEnd(), true
	case h.WhenRun != nil:
		h.Err = errors.Join(h.Err, shield.Run(func() error { h.When = h.WhenRun(from); return nil }))
	case h.Entry != "" && h.When.zero():
		h.When = everywhere
	}
}

func (h *hook) start(from Beginning) (err error) {
	h.attendant, err = h.Start(from)
	h.interrupter, _ = h.attendant.(abilities.Interrupter)
	h.observer, _ = h.attendant.(abilities.Observer)
	switch {
	case err != nil:
		return err
	case h.attendant == nil:
		return errors.New("its Start returned nil")
	case h.interrupter == nil && h.When.zero():
		return errNoSchedule
	}
	return nil
}

func (h *hook) waitsForEntry() bool { return h.Entry != "" && !h.scheduled }

func (h *hook) started() bool { return h.attendant != nil }

// Observers of negative Order come before changes of that Order.
func (h *hook) before(other *hook) int {
	change := func(h *hook) int {
		if h.Order < 0 && h.Changes {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(h.Order, other.Order), change(h)-change(other))
}

func (c Callback) String() string {
	if c.When.zero() && c.Entry == "" && c.Name != "" {
		return c.Name
	}
	if c.Entry == "" {
		return label(c.When, c.Name)
	}
	return onEach(c.Entry, c.Name)
}

func onEach(entry, name string) string {
	if name == "" {
		return "on each " + entry
	}
	return "on each " + entry + ": " + name
}
