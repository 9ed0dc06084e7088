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

// Callback is an [Option] that observes a run: it is called after the tasks of a turn and changes nothing. One value
// serves any number of runs. Most functions of package callbacks return one. In a loop written by hand, call Start,
// then Watch in each pass in which it is due, then End.
type Callback struct {
	// Name appears in errors and in the plan.
	Name string
	// When says in which turns it is called. If WhenRun is set, it computes the schedule from where a run begins and
	// ends.
	When    Schedule
	WhenRun func(Beginning) Schedule
	// Entry, if set, restricts the calls to turns in which a value was logged under this name (see [Logs.Get]), such as
	// "loss_test" after each evaluation. When may then be left out. If every task of the loop had a turn and none
	// logged the name, the run ends with an error that lists the names there are.
	Entry string
	// Needs are names that must be logged, as Entry must, but in any turn.
	Needs []string
	// Monitor says that the callback follows the values of Entry; see [MonitorsWhen].
	Monitor bool
	// Order orders the callbacks of a run, 0 if it is left out. They are started and called by it, the lowest first, and
	// ended in the reverse order. Equal ones keep the order of the options.
	Order int
	// AtRank0 says that of several processes (see [Job]) only the one of rank 0 starts and calls it, as what writes
	// or shows: the others hold the same numbers. It must not do what needs all of them, as reading a state that is cut.
	AtRank0 bool
	// Changes makes it a change: a callback that may change the state ([Report.SetState]), such as to restore an earlier
	// one. It is called after the tasks of an iteration, before the history and all callbacks without Changes. It runs in
	// all processes, so AtRank0 is an error with it.
	Changes bool
	// Start is called when a run starts and returns what is called in its turns. An error ends the run. An error that
	// wraps [ErrStop] ends it before its first turn, without an error: the earlier run that this one resumes was over.
	Start func(Beginning) (Attendant, error)
	// Err is what is wrong with the callback. A run with such a callback returns the error before anything is started.
	Err error
}

// Attendant is what a [Callback] starts for one run. One that has the method Interrupts() bool may ask for a call
// outside of its schedule, as when a save in the background has failed: Interrupts is called after each iteration, or
// before its step where the step may wait for others in a block, and must be quick. A result of true ends the block.
type Attendant interface {
	// Watch is called in each turn in which the callback is due. An error ends the run; [ErrStop] ends it after the
	// turn.
	Watch(ctx context.Context, report Report) error
	// End is called once at the end of the run, whatever happened, in the reverse order of the starts. The context is
	// not cancelled.
	End(ctx context.Context, ending Ending) error
}

// Watch is a [Callback] that calls a function in the iterations of a schedule, with the contract of [Attendant].Watch.
func Watch(when Schedule, watch func(ctx context.Context, report Report) error) Callback {
	return Callback{When: when, Start: startWatch(watch)}
}

// WatchEntry is a [Callback] that calls a function in each turn in which a value was logged under a name.
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
	if c.Start == nil && c.Err == nil { // Err may say why there is none
		c.Err = errNoFunction
	}
	if c.Changes && c.AtRank0 {
		c.Err = errors.Join(c.Err, errors.New("a callback with Changes runs in all processes: leave AtRank0 out"))
	}
	c.Needs = slices.Clone(c.Needs)
	s.hooks = append(s.hooks, hook{Callback: c})
}

// hook is a callback of one run.
type hook struct {
	Callback
	number    int       // among those of its kind, in the order of the options
	scheduled bool      // a monitor that is called in the turns of MonitorsWhen alone
	attendant Attendant // nil if it was not started
	// These are the attendant, if it is one.
	interrupter abilities.Interrupter
	observer    abilities.Observer
	interrupted bool // where processes agree: it asks for a call
}

func (h *hook) kind() string {
	if h.Changes {
		return "change"
	}
	return "callback"
}

// everywhere is the schedule of what waits for an entry alone.
var everywhere = EachStep.AndAtStart().AndAtEnd()

// setSchedule decides when it is called in a run.
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
	h.attendant, err = h.Start(from) // with an ErrStop it may be there too
	h.interrupter, _ = h.attendant.(abilities.Interrupter)
	h.observer, _ = h.attendant.(abilities.Observer)
	switch {
	case err != nil:
		return err
	case h.attendant == nil:
		return errors.New("its start function gave nothing")
	case h.interrupter == nil && h.When.zero():
		return errNoSchedule
	}
	return nil
}

// waitsForEntry reports whether it is called wherever its entry is logged.
func (h *hook) waitsForEntry() bool { return h.Entry != "" && !h.scheduled }

func (h *hook) started() bool { return h.attendant != nil }

// before compares the hooks of a run: callbacks with a negative Order start before the changes that have it too, to
// observe those.
func (h *hook) before(other *hook) int {
	change := func(h *hook) int {
		if h.Order < 0 && h.Changes {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(h.Order, other.Order), change(h)-change(other))
}

// String is its schedule and name, as in errors and in the plan.
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

// hasEntry reports whether a name is among the logs.
func hasEntry(entry string, logs Logs) bool {
	return slices.ContainsFunc(logs.entries, func(e Entry) bool { return e.hasName(entry) || e.hasPath(entry) })
}
