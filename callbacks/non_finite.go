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

// Recovery has the settings of [NonFinite]. A bad iteration has a NaN or infinite value.
type Recovery struct {
	// Limit is the maximum number of bad iterations that are undone by restoring an earlier state. The next one is an
	// error. With 0 the first is one, with the state after it.
	Limit int
	// Copies is the schedule of copies of the state, if Limit is above 0; the start is also copied. A copy is used
	// only after a later iteration with finite values: a step can corrupt the state while its own loss is finite.
	// Without Copies each iteration is copied, and the newest copy is restored; if the next is bad too, the older
	// one.
	Copies loop.Schedule
	// OnUndo is called after an undo, as to lower the learning rate. The report has the restored state; cause wraps
	// [loop.ErrNonFinite].
	OnUndo func(ctx context.Context, r loop.Report, cause error) error
	// Entries are checked instead of all [loop.Losses]. One that is never checked is an error.
	Entries []string
	// When is the checks' schedule, default each iteration; start and end are always checked. Reading a value from a
	// device costs a transfer. Every(Steps(100)) misses values between. With a Limit it requires Copies.
	When loop.Schedule
}

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

// skips: no later value confirms a restored copy.
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
		refuse("Copies or OnUndo is set, but without a limit no turn is undone: set Limit to the number of bad turns that may be undone")
	case p.Limit == 0:
	case p.skips() && isSet(p.When):
		refuse("without Copies each turn is checked: leave When out, or set Copies")
	case p.skips():
	case c.Err() != nil:
		refuse("copies: %s: %w", c, c.Err())
	case !c.Possible():
		refuse("copies must be due at some time, got %q; for the one at the start only, use AtStart", c)
	}
	return errors.Join(errs...)
}

// NonFinite checks for NaN and infinite losses. It ends the run with an error that wraps [loop.ErrNonFinite], or
// restores an earlier state ([Recovery].Limit), including learning rate and random numbers. A state that changes in
// place then needs a method Snapshot ([loop.Stepper]). The iteration still counts.
//
// It runs before other changes, the history and all callbacks: a checkpoint never has a detected bad state. To detect
// a corrupted state with a finite loss earlier, check the norm of the gradients ([Recovery].Entries).
func NonFinite(settings ...Recovery) loop.Callback {
	policy := joinedRecovery(settings)
	err := policy.check()
	when := loop.EachStep
	if isSet(policy.When) {
		when = policy.When
	}
	return loop.Callback{Name: "non-finite: " + policy.String(), When: when.AndAtStart().AndAtEnd(), Needs: policy.Entries, Order: -1, Changes: true, Err: err,
		Start: func(from loop.Beginning) (loop.Attendant, error) {
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

const causes = "\n  frequent causes: labels outside the classes, a learning rate too high, unscaled inputs, log or division of 0; strategies.Eager with " +
	"strategies.CheckFinite names the operation"

type finiteGuard struct {
	policy Recovery
	when   loop.Schedule
	copies loop.Schedule

	found        []bool
	newest, good copied
	last         loop.Elapsed
	wasBad       bool
	undone       int
}

func (g *finiteGuard) Watch(ctx context.Context, r loop.Report) error {
	looked, bad, err := g.look(r.Logs)
	switch {
	case err != nil:
		return err
	case bad == nil:
		return g.keep(ctx, r, looked)
	case !g.policy.undoes():
		return fmt.Errorf("%w%s", bad, causes)
	}
	if err := g.undo(ctx, r); err != nil {
		return fmt.Errorf("%w; the state could not be put back: %w", bad, err)
	}
	if g.undone++; g.undone > g.policy.Limit {
		return fmt.Errorf("%w; the limit of %s is reached: %d were undone already%s", bad, g.policy, g.policy.Limit, causes)
	}
	if g.policy.OnUndo == nil {
		return nil
	}
	return g.policy.OnUndo(ctx, r, bad)
}

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
			continue
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

// Finite values confirm the state before the turn only.
func (g *finiteGuard) keep(ctx context.Context, r loop.Report, looked bool) error {
	if !g.policy.undoes() {
		return nil
	}
	if looked {
		g.wasBad = false
	}
	if !g.good.any {
		g.last = r.Elapsed
		return g.good.take(ctx, r) // the only one
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
	return g.newest.take(ctx, r)
}

func (g *finiteGuard) undo(ctx context.Context, r loop.Report) error {
	again := g.wasBad
	g.wasBad = true
	// At a run's end the newest copy may be the bad state.
	if g.policy.skips() && g.newest.any && !again && r.Elapsed.Steps > g.last.Steps {
		return g.newest.restore(ctx, r)
	}
	if !g.good.any {
		return errors.New("there is no earlier copy: the first values seen are bad")
	}
	return errors.Join(g.newest.close(), g.good.restore(ctx, r))
}

func (g *finiteGuard) End(_ context.Context, e loop.Ending) error {
	err := errors.Join(g.newest.close(), g.good.close())
	if e.Err != nil || e.Elapsed.Steps == e.From.Steps {
		return err
	}
	for i, name := range g.policy.Entries {
		if g.found[i] {
			continue
		}
		if _, missing := e.Latest.Get(name); missing != nil {
			err = errors.Join(err, fmt.Errorf("an entry was never checked: %w", missing))
		} else {
			err = errors.Join(err, fmt.Errorf("%s was never checked: it was logged only in turns other than %s", name, g.when))
		}
	}
	return err
}
