package flaxlike

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/names"
	"github.com/lazo-ml/lazo/loop"
)

// ready builds the step before its first run: its errors change nothing.
func (s step) ready(ctx context.Context, m *Model, batch data.Batch) error {
	m.seen.mu.Lock()
	ready := m.seen.built[s.of] && m.seen.expected == nil
	m.seen.mu.Unlock()
	if ready {
		return nil
	}
	if err := m.before(s, batch); err != nil {
		return err
	}
	if err := s.of.Prepare(ctx, m.state, batch); err != nil {
		return m.ofOtherInputs(batch, err)
	}
	m.seen.mu.Lock()
	m.seen.built[s.of] = true
	e := m.seen.expected
	if s.of == m.train {
		m.seen.expected = nil
	}
	m.seen.mu.Unlock()
	if s.of != m.train || e == nil {
		return nil
	}
	for _, t := range e.all {
		if err := m.apart(t.Name); err != nil {
			return err
		}
		if err := m.readyFor(ctx, t, batch); err != nil {
			return fmt.Errorf("test %q: %w", t.Name, graphs.Inner(err))
		}
	}
	return m.find(ctx, *e)
}

// apart refuses a validation set whose figures would have the training's names, like size_loss.
func (m *Model) apart(test string) error {
	training := shownOf(m.train.Entries())
	for _, e := range training {
		e.Name = test + "_" + e.Name
		if slices.ContainsFunc(training, func(t loop.Entry) bool { return t.Name == e.Name }) {
			return fmt.Errorf("the set %q in Validations: training also logs %q: give the set another name", test, e.Name)
		}
	}
	return nil
}

// readyFor builds the test step, which is slow, only for fields that differ from the training's.
func (m *Model) readyFor(ctx context.Context, t evaluation, trained data.Batch) error {
	s := t.step
	var batch data.Batch
	peek := func() (err error) {
		batch, err = data.Peek(t.Data.From(0))
		return err
	}
	if s.set != nil {
		batch.Fields = s.set.Fields()
	} else if err := peek(); err != nil {
		return err
	}
	if err := m.before(s, batch); err != nil || slices.Equal(formsOf(batch), formsOf(trained)) {
		return err
	}
	if s.set != nil {
		if err := peek(); err != nil {
			return err
		}
	}
	return m.ofOtherInputs(batch, s.of.Prepare(ctx, m.state, batch))
}

func formsOf(batch data.Batch) (forms []string) {
	fields := batch.Fields
	if batch.Resident != nil {
		fields = batch.Resident.Fields()
	}
	for _, f := range fields {
		if len(f.Array.Dims) > 0 && f.Name != data.Mask {
			forms = append(forms, fmt.Sprint(f.Name, f.Array.DType(), f.Array.Dims[1:]))
		}
	}
	slices.Sort(forms)
	return forms
}

func (m *Model) find(ctx context.Context, e expected) error {
	logged, epoch := map[string]bool{epochEntry: true}, loop.Entry{Collection: progress, Name: epochEntry}
	add := func(test string, entries []loop.Entry) {
		for _, e := range entries {
			if test != "" {
				e.Name = test + "_" + e.Name
			}
			logged[e.Name], logged[e.Path()] = true, true
		}
	}
	training := shownOf(m.train.Entries())
	add("", append(training, epoch))
	training = slices.DeleteFunc(training, func(e loop.Entry) bool { return strings.HasPrefix(e.Name, rateEntry) })
	tests := slices.Sorted(maps.Keys(e.tests))
	for _, test := range tests {
		add(test, training)
	}
	known := func(entry string) bool { return logged[entry] }
	if slices.ContainsFunc(e.entries, func(entry string) bool { return !known(entry) }) {
		for _, test := range tests {
			if err := m.test.Prepare(ctx, m.state, e.tests[test]); err != nil {
				return fmt.Errorf("test %q: %w", test, err)
			}
			add(test, shownOf(m.test.Entries()))
		}
	}
	for _, entry := range e.entries {
		if known(entry) {
			continue
		}
		var short []string
		for name := range logged {
			if !strings.Contains(name, ".") {
				short = append(short, name)
			}
		}
		slices.Sort(short)
		hint := ""
		if at := strings.LastIndex(entry, "_"); at > 0 && logged[entry[at+1:]+"_"+entry[:at]] {
			hint = fmt.Sprintf("; did you mean %q?", entry[at+1:]+"_"+entry[:at])
		} else if of, ok := m.onlyLoss(entry, tests); ok && logged[of] {
			hint = fmt.Sprintf("; did you mean %q? The only loss is logged under that name", of)
		} else if near := names.Nearest(entry, short); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		err := fmt.Errorf("a callback waits for %q: %w%s\n  these will be logged: %s", entry, loop.ErrNoEntry, hint, strings.Join(short, ", "))
		if strings.HasPrefix(entry, rateEntry) && m.set.optimizer != nil {
			if _, untold := m.set.optimizer.FactorsAt(0); untold != nil {
				err = fmt.Errorf("%w\n  %w", err, graphs.Inner(untold))
			}
		}
		return err
	}
	return nil
}

func (m *Model) onlyLoss(entry string, tests []string) (of string, ok bool) {
	if len(m.set.losses) != 1 {
		return "", false
	}
	own, test := m.set.losses[0].logged(false), ""
	for _, t := range tests {
		if rest, is := strings.CutPrefix(entry, t+"_"); is {
			entry, test = rest, t+"_"
		}
	}
	return test + trained, entry == own || entry == own+"_"+trained
}
