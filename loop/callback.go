package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Callback runs beside a run, behind the tasks of a turn: it looks, and changes nothing. It is an [Option], serves any
// number of runs, and is what most functions of package callbacks give. In a loop written by hand, call Start, then Watch
// in each pass in which it is due, and End.
type Callback struct {
	// Name stands in errors and in the plan.
	Name string
	// When is when it looks. WhenRun takes its place where that hangs on where a run begins and ends.
	When    Schedule
	WhenRun func(Beginning) Schedule
	// Entry has it look only in turns in which a value was logged under this name (see [Logs.Get]): "test.loss" after each
	// evaluation; without When, in each of them. Where nothing has logged the name although every task of the loop had its
	// turn, the run ends with an error that lists what there is.
	Entry string
	// Monitor tells that it follows the values of Entry: see [MonitorsWhen].
	Monitor bool
	Place   Place
	// Start makes what looks, when a run starts. An error ends the run. One that wraps [ErrStop] ends it before its first
	// turn, as a good one: the run that it goes on from had come to its end.
	Start func(Beginning) (Attendant, error)
	// Err is what is wrong with the callback: a run refuses it, before anything is started.
	Err error
}

// Change runs beside a run as a [Callback] does, and may change its state: put an earlier one back, set the learning rate.
// It comes behind the tasks of a turn, before the turn goes to the history and before all callbacks, so that those see the
// state as it was left.
type Change struct {
	Name  string
	When  Schedule
	Entry string
	// Needs are names that must be logged as Entry must, but are not waited for.
	Needs   []string
	Monitor bool
	// First has it come before the other changes, wherever it stands among the options.
	First bool
	Start func(Beginning) (Changer, error)
	Err   error
}

// Attendant is what a [Callback] starts.
type Attendant interface {
	// Watch looks at a turn. Returning [ErrStop] ends the run after the turn.
	Watch(ctx context.Context, report Report) error
	// End is always called, whatever happened, that of the last attendant first.
	End(ctx context.Context, ending Ending) error
}

// Changer is what a [Change] starts. Its methods are called as those of an [Attendant].
type Changer interface {
	Change(ctx context.Context, report Report, state State) error
	End(ctx context.Context, ending Ending, state State) error
}

// Observer is an [Attendant] that also hears what the run turns to, each time: what it does then is in the time of the turn.
type Observer interface {
	Attendant
	At(step int64, what Activity)
}

// Interrupter is an [Attendant] with work of its own beside the run, which may want to look off its schedule: a save in the
// background has failed. Interrupts is asked behind each turn and must be quick; it cuts blocks of steps only where it says
// so.
type Interrupter interface {
	Attendant
	Interrupts() bool
}

// Place is where a callback comes among the others. Those of one place come in the order of the options, and their ends in
// the reverse order.
type Place int

const (
	// Between is between the two others.
	Between Place = iota
	// BeforeAll callbacks start before all others and end behind them.
	BeforeAll
	// AfterAll callbacks look behind all others and hear of the end before them: for what must see a turn as it was left.
	AfterAll
)

// Watch is a [Callback] that calls a function.
func Watch(when Schedule, watcher Watcher) Callback {
	return Callback{When: when, Start: startWatcher(watcher)}
}

// WatchEntry is a [Callback] that calls a function in each turn in which a value was logged under a name.
func WatchEntry(entry string, watcher Watcher) Callback {
	c := Callback{Entry: entry, When: everywhere, Start: startWatcher(watcher)}
	if entry == "" {
		c.Err = fmt.Errorf("%w: no entry to watch", ErrName)
	}
	return c
}

func startWatcher(w Watcher) func(Beginning) (Attendant, error) {
	if w == nil {
		return nil
	}
	return func(Beginning) (Attendant, error) { return attendFunc(w), nil }
}

type attendFunc Watcher

func (f attendFunc) Watch(ctx context.Context, r Report) error { return f(ctx, r) }
func (f attendFunc) End(context.Context, Ending) error         { return nil }

func (c Callback) apply(s *settings) {
	if c.Start == nil {
		c.Err = errors.Join(c.Err, ErrNoFunction)
	}
	s.beside = append(s.beside, beside{Callback: c})
}

func (c Change) apply(s *settings) {
	if c.Start == nil {
		c.Err = errors.Join(c.Err, ErrNoFunction)
	}
	s.beside = append(s.beside, beside{
		Callback: Callback{Name: c.Name, When: c.When, Entry: c.Entry, Monitor: c.Monitor, Err: c.Err},
		change:   c.Start, first: c.First, needs: slices.Clone(c.Needs),
	})
}

// beside is a callback or a change of one run.
type beside struct {
	Callback
	change func(Beginning) (Changer, error) // nil if it is a callback
	first  bool
	needs  []string
	// sparse monitors look in the turns of MonitorsWhen alone.
	sparse bool
	// One of the two is there when it was started.
	attendant Attendant
	changer   Changer
	// interrupter is the attendant, if it is one.
	interrupter Interrupter
}

// everywhere is the schedule of what waits for an entry alone.
var everywhere = EachStep.AndAtStart().AndAtEnd()

// schedule settles when it looks in a run.
func (b *beside) schedule(from Beginning) {
	switch {
	case b.Monitor && from.MonitorsWhen != nil:
		b.When, b.sparse = from.MonitorsWhen.AndAtStart().AndAtEnd(), true
	case b.WhenRun != nil:
		b.When = b.WhenRun(from)
	case b.Entry != "" && b.When.zero():
		b.When = everywhere
	}
}

func (b *beside) start(from Beginning) (err error) {
	if b.change != nil {
		b.changer, err = b.change(from)
	} else {
		b.attendant, err = b.Start(from)
	}
	if err == nil && !b.started() {
		err = errors.New("its start function gave nothing")
	}
	b.interrupter, _ = b.attendant.(Interrupter)
	if err == nil && b.interrupter == nil && b.When.zero() {
		err = errNoSchedule
	}
	return err
}

// due tells whether it is to look behind a turn.
func (b *beside) due(before, after Elapsed) bool {
	return b.When.Due(before, after) || b.interrupter != nil && b.interrupter.Interrupts()
}

func (b *beside) started() bool { return b.attendant != nil || b.changer != nil }

func (b *beside) look(ctx context.Context, r Report) error {
	if b.changer != nil {
		return b.changer.Change(ctx, r, r.state)
	}
	return b.attendant.Watch(ctx, r)
}

func (b *beside) end(ctx context.Context, e Ending) error {
	if b.changer != nil {
		return b.changer.End(ctx, e, e.state)
	}
	return b.attendant.End(ctx, e)
}

// rank is the place among all that stand beside the run.
func (b *beside) rank() int {
	switch {
	case b.Place == BeforeAll:
		return -2
	case b.first:
		return -1
	case b.Place == AfterAll:
		return 1
	}
	return 0
}

// String is what errors and the plan call it: when it looks, and its name.
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

// sees tells whether a name is among the logs.
func sees(entry string, logs Logs) bool {
	for i := range logs.entries {
		if logs.entries[i].hasName(entry) || logs.entries[i].hasPath(entry) {
			return true
		}
	}
	return false
}
