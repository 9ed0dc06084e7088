package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

// Recovery says what [NonFinite] does about a bad turn, which is one with a value that is NaN or infinite. The zero
// Recovery is [FailRun].
type Recovery struct {
	name  string
	limit int
	// copies is when the state is copied. A Recovery without a name copies none.
	copies loop.Schedule
	// newest restores the newest copy, though no later value has shown it to be good.
	newest bool
}

// FailRun ends the run with an error that wraps [loop.ErrNonFinite]; the reason is [loop.Failed]. The state is that
// after the bad turn.
var FailRun = Recovery{}

// SkipTurn restores the state from before a bad turn, up to limit times in a run; the next bad turn is an error as with
// [FailRun], with the restored state. The state is copied after each turn, and two copies are kept: a step can spoil
// the state while its own loss is still finite, so if the turn after a skipped one is bad too, the older copy is
// restored, which has led to a finite value.
func SkipTurn(limit int) Recovery {
	return Recovery{name: "skip turn", limit: limit, copies: loop.EachStep, newest: true}
}

// RestoreCopy restores a copy of the state after a bad turn, up to limit times in a run; the next bad turn is an error
// as with [FailRun], with the restored state. A copy is made at the start, and on the schedule while all values are
// finite. It is used once a later turn has shown finite values, because a step can spoil the state while its own loss
// is still finite; until then the copy before is kept too.
func RestoreCopy(limit int, copies loop.Schedule) Recovery {
	return Recovery{name: "restore copy", limit: limit, copies: copies}
}

func (p Recovery) String() string {
	if p.undoes() {
		return p.name
	}
	return "fail run"
}

func (p Recovery) undoes() bool { return p.name != "" }

// NonFiniteOption is a setting of [NonFinite].
type NonFiniteOption func(*finiteGuard)

// CheckEntries sets the entries that are checked, in place of all [loop.Losses]. They may be any numbers, such as the
// norm of the gradients, which shows earlier than the loss that the state is spoiled. An entry need not be in every
// turn. If all tasks had a turn and none logged it, the run ends with an error; if it was in no turn that was checked,
// that is an error at the end.
func CheckEntries(names ...string) NonFiniteOption {
	names = slices.Clone(names)
	return func(g *finiteGuard) { g.names = append(g.names, names...) }
}

// CheckWhen sets the turns that are checked, in place of every one; the start and the end are checked too. Reading a
// value from a device takes a fetch. With Every(Steps(100)), a bad value is found up to 100 steps late, and not at all
// if the values are finite again by then. [SkipTurn] must check each turn.
func CheckWhen(when loop.Schedule) NonFiniteOption {
	return func(g *finiteGuard) { g.when, g.whenSet = when, true }
}

// OnUndo calls a function when a bad turn was undone, to lower the learning rate or write a log for example. Its report
// has the restored state. The cause wraps [loop.ErrNonFinite]. An error of the function ends the run, [loop.ErrStop]
// included.
func OnUndo(do func(ctx context.Context, r loop.Report, cause error) error) NonFiniteOption {
	return func(g *finiteGuard) {
		if do == nil {
			g.errs = append(g.errs, fmt.Errorf("on undo: %w", errNoFunction))
		}
		g.onUndo = do
	}
}

// NonFinite looks for losses that are NaN or infinite and handles them by the policy: [FailRun], [SkipTurn] or
// [RestoreCopy]. It looks after the tasks of a turn, before the other changes, the history and all callbacks: a
// checkpoint of a bad turn has the restored state, or is not made if the run fails. The turn still counts, and other
// callbacks and the history see its values. The whole state is restored, with learning rate and random numbers. For
// SkipTurn and RestoreCopy, a state that changes in place must have a method Snapshot ([loop.State]).
//
// A loss is computed from the state before its step. If a step spoils the state while its loss is still finite, the
// callbacks of that turn see a spoiled state, and the next turn is the bad one. To find that earlier, log the norm of
// the gradients and check it too ([CheckEntries]).
func NonFinite(policy Recovery, options ...NonFiniteOption) loop.Change {
	options = slices.Clone(options)
	g, err := newFiniteGuard(policy, options)
	return loop.Change{Name: "non-finite: " + policy.String(), When: g.when.AndAtStart().AndAtEnd(), Needs: g.names, Order: -1, Err: err,
		Start: func(from loop.Beginning) (loop.Changer, error) {
			g, err := newFiniteGuard(policy, options)
			if err == nil && policy.undoes() {
				err = keepable(from)
			}
			if err != nil {
				return nil, &refusal{"non-finite", err}
			}
			return g, nil
		}}
}

type finiteGuard struct {
	policy  Recovery
	names   []string // none: all losses
	when    loop.Schedule
	whenSet bool // by CheckWhen
	onUndo  func(ctx context.Context, r loop.Report, cause error) error
	errs    []error

	found []bool // of each name: it was checked
	// newest is the last copy, good the last one that has led to finite values.
	newest, good copied
	last         loop.Elapsed // when a copy could be made last
	wasBad       bool         // the last values were
	undone       int
}

func newFiniteGuard(policy Recovery, options []NonFiniteOption) (*finiteGuard, error) {
	g := &finiteGuard{policy: policy, when: loop.EachStep}
	for _, o := range options {
		if o != nil {
			o(g)
		}
	}
	g.found = make([]bool, len(g.names))
	for _, name := range g.names {
		if name == "" {
			g.errs = append(g.errs, fmt.Errorf("%w: no entry to check", records.ErrName))
		}
	}
	if policy.undoes() {
		if policy.limit < 1 {
			g.errs = append(g.errs, fmt.Errorf("limit must be positive, got %d; to undo nothing, take FailRun", policy.limit))
		}
		if c := policy.copies; c.Err() != nil {
			g.errs = append(g.errs, fmt.Errorf("copies: %s: %w", c, c.Err()))
		} else if !c.Possible() {
			g.errs = append(g.errs, fmt.Errorf("copies must be due at some time, got %q; for the one at the start alone, say AtStart", c))
		}
		if policy.newest && g.whenSet {
			g.errs = append(g.errs, errors.New("SkipTurn looks at each turn: leave CheckWhen out, or take RestoreCopy"))
		}
	}
	return g, errors.Join(g.errs...)
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
	if g.undone++; g.undone > g.policy.limit {
		return fmt.Errorf("%w; the limit of %s is %d, and so many were undone already", bad, g.policy, g.policy.limit)
	}
	if g.onUndo == nil {
		return nil
	}
	return g.onUndo(ctx, r, bad)
}

// look finds a value that is not finite; looked reports whether there was any value.
func (g *finiteGuard) look(logs loop.Logs) (looked bool, bad, err error) {
	if len(g.names) == 0 {
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
	for i, name := range g.names {
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
	if r.Elapsed.Steps == g.last.Steps || !g.policy.copies.Due(g.last, r.Elapsed) {
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
	if g.policy.newest && g.newest.any && !again && r.Elapsed.Steps > g.last.Steps {
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
	for i, name := range g.names {
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
