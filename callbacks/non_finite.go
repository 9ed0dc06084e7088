package callbacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

// Recovery has the settings of [NonFinite]. A bad turn is one with a value that is NaN or infinite. The zero Recovery
// checks all losses in each turn, and ends the run at the first bad one. Where several are given, the last one that
// sets a field counts.
type Recovery struct {
	// Limit is how many bad turns of a run are undone: an earlier state is restored, and the run goes on. The next bad
	// turn is an error, with the restored state. With 0 the first bad turn is an error, and the state is that after it.
	Limit int
	// Copies is when the state is copied, for a Limit above 0. A copy is made at the start, and on the schedule while all
	// values are finite. It is used once a later turn has shown finite values, because a step can spoil the state while
	// its own loss is still finite; until then the copy before is kept too.
	//
	// Without Copies a bad turn is skipped: the state is copied after each turn, and that from before the bad turn is
	// restored. Two copies are kept: if the turn after a skipped one is bad too, the older copy is restored, which has
	// led to a finite value.
	Copies loop.Schedule
	// OnUndo is called when a bad turn was undone, to lower the learning rate or write a log for example. Its report has
	// the restored state. The cause wraps [loop.ErrNonFinite]. An error of the function ends the run, [loop.ErrStop]
	// included.
	OnUndo func(ctx context.Context, r loop.Report, cause error) error
	// Entries are checked in place of all [loop.Losses]. They may be any numbers, such as the norm of the gradients,
	// which shows earlier than the loss that the state is spoiled. An entry need not be in every turn. If all tasks had a
	// turn and none logged it, the run ends with an error; if it was in no turn that was checked, that is an error at the
	// end.
	Entries []string
	// When is the schedule of the checks, in place of every turn; the start and the end are checked too. Reading a value
	// from a device takes a fetch. With Every(Steps(100)), a bad value is found up to 100 steps late, and not at all if
	// the values are finite again by then. Without Copies a Recovery with a Limit must check each turn.
	When loop.Schedule
}

// String is "fail run", "skip turn" or "restore copy".
func (p Recovery) String() string {
	switch {
	case p.Limit == 0:
		return "fail run"
	case p.skips():
		return "skip turn"
	}
	return "restore copy"
}

func (p Recovery) undoes() bool { return p.Limit != 0 }

// skips restores the newest copy, though no later value has shown it to be good.
func (p Recovery) skips() bool { return !isSet(p.Copies) }

func isSet(s loop.Schedule) bool { return !reflect.ValueOf(s).IsZero() }

func joinedRecovery(list []Recovery) (all Recovery) {
	for _, p := range list {
		all.Limit = cmp.Or(p.Limit, all.Limit)
		if isSet(p.Copies) {
			all.Copies = p.Copies
		}
		if p.OnUndo != nil {
			all.OnUndo = p.OnUndo
		}
		if p.Entries != nil {
			all.Entries = slices.Clone(p.Entries)
		}
		if isSet(p.When) {
			all.When = p.When
		}
	}
	return all
}

func (p Recovery) check() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if slices.Contains(p.Entries, "") {
		refuse("%w: no entry to check", records.ErrName)
	}
	switch c := p.Copies; {
	case p.Limit < 0:
		refuse("limit must not be negative, got %d; with 0 the first bad turn ends the run", p.Limit)
	case p.Limit == 0 && (isSet(c) || p.OnUndo != nil):
		refuse("nothing is undone without a limit, got Copies or OnUndo: set Limit to the number of bad turns that may be undone")
	case p.Limit == 0:
	case p.skips() && isSet(p.When):
		refuse("without Copies each turn is checked: leave When out, or set Copies")
	case p.skips():
	case c.Err() != nil:
		refuse("copies: %s: %w", c, c.Err())
	case !c.Possible():
		refuse("copies must be due at some time, got %q; for the one at the start alone, say AtStart", c)
	}
	return errors.Join(errs...)
}

// NonFinite looks for losses that are NaN or infinite and handles them by the settings: it ends the run with an error
// that wraps [loop.ErrNonFinite], or restores an earlier state ([Recovery].Limit). It looks after the tasks of a turn,
// before the other changes, the history and all callbacks: a checkpoint of a bad turn has the restored state, or is not
// made if the run fails. The turn still counts, and other callbacks and the history see its values. The whole state is
// restored, with learning rate and random numbers. For that, a state that changes in place must have a method Snapshot
// ([loop.State]).
//
// A loss is computed from the state before its step. If a step spoils the state while its loss is still finite, the
// callbacks of that turn see a spoiled state, and the next turn is the bad one. To find that earlier, log the norm of
// the gradients and check it too ([Recovery].Entries).
func NonFinite(settings ...Recovery) loop.Change {
	policy := joinedRecovery(settings)
	err := policy.check()
	when := loop.EachStep
	if isSet(policy.When) {
		when = policy.When
	}
	return loop.Change{Name: "non-finite: " + policy.String(), When: when.AndAtStart().AndAtEnd(), Needs: policy.Entries, Order: -1, Err: err,
		Start: func(from loop.Beginning) (loop.Changer, error) {
			err := err
			if err == nil && policy.undoes() {
				err = keepable(from)
			}
			if err != nil {
				return nil, &refusal{"non-finite", err}
			}
			g := &finiteGuard{policy: policy, copies: policy.Copies, found: make([]bool, len(policy.Entries)), when: when}
			if policy.skips() {
				g.copies = loop.EachStep
			}
			return g, nil
		}}
}

type finiteGuard struct {
	policy Recovery
	when   loop.Schedule
	copies loop.Schedule

	found []bool // of each of the entries: it was checked
	// newest is the last copy, good the last one that has led to finite values.
	newest, good copied
	last         loop.Elapsed // when a copy could be made last
	wasBad       bool         // the last values were
	undone       int
}

func (g *finiteGuard) Change(ctx context.Context, r loop.Report, s loop.State) error {
	looked, bad, err := g.look(r.Logs)
	switch {
	case err != nil:
		return err
	case bad == nil:
		return g.keep(ctx, r, s, looked)
	case !g.policy.undoes():
		return bad
	}
	if err := g.undo(ctx, r, s); err != nil {
		return fmt.Errorf("%w; the state could not be put back: %w", bad, err)
	}
	if g.undone++; g.undone > g.policy.Limit {
		return fmt.Errorf("%w; the limit of %s is %d, and so many were undone already", bad, g.policy, g.policy.Limit)
	}
	if g.policy.OnUndo == nil {
		return nil
	}
	return g.policy.OnUndo(ctx, r, bad)
}

// look finds a value that is not finite; looked reports whether there was any value.
func (g *finiteGuard) look(logs loop.Logs) (looked bool, bad, err error) {
	if len(g.policy.Entries) == 0 {
		for e := range logs.All() {
			if e.Collection == loop.Losses {
				looked = true
				if bad, err = check(e); bad != nil || err != nil {
					return true, bad, err
				}
			}
		}
		return looked, nil, nil
	}
	for i, name := range g.policy.Entries {
		e, err := logs.Get(name)
		if errors.Is(err, loop.ErrNoEntry) {
			continue // it need not be in each turn
		}
		if err != nil {
			return looked, nil, err
		}
		looked, g.found[i] = true, true
		if bad, err := check(e); bad != nil || err != nil {
			return true, bad, err
		}
	}
	return looked, nil, nil
}

func check(e loop.Entry) (bad, err error) {
	v, err := e.Value.Float()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", e.Path(), err)
	case finite(v):
		return nil, nil
	}
	return fmt.Errorf("%s is %v: %w", e.Path(), v, loop.ErrNonFinite), nil
}

// keep copies the state of a turn without a bad value, if a copy is due. Finite values show that the state before the
// turn was good, but not the one after it.
func (g *finiteGuard) keep(ctx context.Context, r loop.Report, s loop.State, looked bool) error {
	if !g.policy.undoes() {
		return nil
	}
	if looked {
		g.wasBad = false
	}
	if !g.good.any {
		g.last = r.Elapsed
		return g.good.take(ctx, s) // it is not known to be good, but there is no other
	}
	if looked && g.newest.any {
		err := g.good.close()
		g.good, g.newest = g.newest, copied{}
		if err != nil {
			return err
		}
	}
	if r.Elapsed.Steps == g.last.Steps || !g.copies.Due(g.last, r.Elapsed) {
		return nil
	}
	g.last = r.Elapsed
	return g.newest.take(ctx, s)
}

// undo restores an earlier state.
func (g *finiteGuard) undo(ctx context.Context, r loop.Report, s loop.State) error {
	again := g.wasBad
	g.wasBad = true
	// At the end of a run, the newest copy may be of the state that is bad.
	if g.policy.skips() && g.newest.any && !again && r.Elapsed.Steps > g.last.Steps {
		return g.newest.restore(ctx, s)
	}
	if !g.good.any {
		return errors.New("there is no earlier copy: the first values seen are bad")
	}
	return errors.Join(g.newest.close(), g.good.restore(ctx, s))
}

// End frees the copies, and finds names that were never checked.
func (g *finiteGuard) End(_ context.Context, e loop.Ending, _ loop.State) error {
	err := errors.Join(g.newest.close(), g.good.close())
	if e.Err != nil || e.Elapsed.Steps == e.From.Steps {
		return err
	}
	for i, name := range g.policy.Entries {
		if g.found[i] {
			continue
		}
		if _, missing := e.Latest.Get(name); missing != nil {
			err = errors.Join(err, fmt.Errorf("was to be checked and never was: %w", missing))
		} else {
			err = errors.Join(err, fmt.Errorf("%s was to be checked and never was: it was logged in other turns than %s", name, g.when))
		}
	}
	return err
}
