package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Recovery says what [NonFinite] does about a bad turn: one with a value that is NaN or infinite. The zero Recovery is
// [FailRun].
type Recovery struct {
	name  string
	limit int
	// copies says when the state is kept. A policy without a name keeps none.
	copies loop.Schedule
	// skip goes back to the newest state, though no later value has shown it to be good.
	skip bool
}

// FailRun ends the run with an error that wraps [loop.ErrNonFinite]; the reason is [loop.Failed]. The state is what the bad turn
// made of it.
var FailRun = Recovery{}

// SkipTurn undoes what a bad turn did to the state, for up to limit turns of a run; the next is an error as with
// [FailRun], with the state as it was before. For this the state is copied after each turn, and two copies are kept: a
// step can spoil the state while its own loss is still finite, so where the turn after a skipped one is bad too, the
// run goes back to the state before, which has led to a finite value since.
func SkipTurn(limit int) Recovery {
	return Recovery{name: "skip turn", limit: limit, copies: loop.EachStep, skip: true}
}

// RestoreCopy puts a copy of the state back after a bad turn, up to limit times in a run; the next is an error as with
// [FailRun], with the copy as the state. A copy is made at the start, and on the schedule while all is finite. It
// counts as soon as a later look has found finite values, because a step can spoil the state while its own loss is
// still finite; until then the one before is kept too.
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

// CheckEntries says what is looked at, in place of all [loop.Losses]. It may be any number, such as the norm of the
// gradients, which shows earlier than the loss that the state is spoiled. An entry need not be in every turn; one that
// nothing has logged when all tasks had a turn is an error, and at the end one that was in none that was looked at.
func CheckEntries(names ...string) NonFiniteOption {
	names = slices.Clone(names)
	return func(g *finiteGuard) { g.names = append(g.names, names...) }
}

// CheckWhen says in which turns to look, in place of each one, at the start and at the end: reading a value is a fetch
// a step for what comes from a device. With Every(Steps(100)), a fault is found up to 100 steps late, and one that is
// gone by then is not found. [SkipTurn] must look at each turn.
func CheckWhen(when loop.Schedule) NonFiniteOption {
	return func(g *finiteGuard) { g.when, g.sparse = when, true }
}

// OnUndo calls a function when a bad turn was undone; its report has the state that was put back. It is the place to
// lower the learning rate, or to write a line. The cause wraps [loop.ErrNonFinite]. An error ends the run, and so does
// [loop.ErrStop].
func OnUndo(do func(ctx context.Context, r loop.Report, cause error) error) NonFiniteOption {
	return func(g *finiteGuard) {
		if do == nil {
			g.errs = append(g.errs, fmt.Errorf("on undo: %w", loop.ErrNoFunction))
		}
		g.onUndo = do
	}
}

// NonFinite looks for losses that are NaN or infinite and does what the policy says: [FailRun], [SkipTurn] or
// [RestoreCopy]. It looks behind the tasks of a turn, before the turn goes to the history and before all callbacks,
// wherever it stands among the options: a checkpoint of a bad turn has the state that was put back, or is not made at
// all where the run fails. The turn still counts, its step number is not used again, and its logs say what came out:
// other callbacks and the history see the NaN. Learning rate, random numbers and whatever else is in the state go back
// with it. For SkipTurn and RestoreCopy, a state that changes in place must be a [loop.Snapshotter].
//
// A loss tells about the state before its step. Where a step may spoil the state under a loss that is still finite, a
// callback of that turn sees a spoiled state, and the next turn is the bad one: log the norm of the gradients and check
// it too ([CheckEntries]), and have a checkpoint look at its values.
//
// Ciclo looks for none; Jaxloop looks in its early stopping only, at evaluations. Keras ends as if all had gone well,
// so that the backup is deleted; here a NaN never looks like a success.
func NonFinite(policy Recovery, options ...NonFiniteOption) loop.Change {
	options = slices.Clone(options)
	g, err := newFiniteGuard(policy, options)
	return loop.Change{Name: "non-finite: " + policy.String(), When: g.when.AndAtStart().AndAtEnd(), Needs: g.names, First: true, Err: err,
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
	policy Recovery
	names  []string // none: all losses
	when   loop.Schedule
	sparse bool // when was given
	onUndo func(ctx context.Context, r loop.Report, cause error) error
	errs   []error

	found []bool // of each name: it was looked at
	// newest is the last copy, good one that has led to finite values.
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
			g.errs = append(g.errs, fmt.Errorf("%w: no entry to check", loop.ErrName))
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
		if policy.skip && g.sparse {
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

// look finds a value that is not finite; looked tells whether there was anything to see.
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
			continue // it is not logged in each turn
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

// keep copies the state of a turn without a bad value, if a copy is due. What it has seen says that the state before
// the turn was good; of the one after it says little.
func (g *finiteGuard) keep(ctx context.Context, r loop.Report, s loop.State, looked bool) error {
	if !g.policy.undoes() {
		return nil
	}
	if looked {
		g.wasBad = false
	}
	if !g.good.any {
		g.last = r.Elapsed
		return g.good.take(ctx, s) // there is nothing better yet
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

// undo puts an earlier state back.
func (g *finiteGuard) undo(ctx context.Context, r loop.Report, s loop.State) error {
	again := g.wasBad
	g.wasBad = true
	// At the end of a run, the newest copy may be of the very state that is bad.
	if g.policy.skip && g.newest.any && !again && r.Elapsed.Steps > g.last.Steps {
		return g.newest.restore(ctx, s)
	}
	if !g.good.any {
		return errors.New("there is no earlier copy: the first values seen are bad")
	}
	return errors.Join(g.newest.close(), g.good.restore(ctx, s))
}

// End frees the copies, and finds names that were never looked at.
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
