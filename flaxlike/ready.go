package flaxlike

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// expected is what the first step of a run is to look for.
type expected struct {
	entries []string              // that callbacks wait for
	tests   map[string]data.Batch // a batch of each of the run's tests
	rate    bool                  // the learning rate is logged
}

// ready builds the step before its first run, so that what is wrong with the batch's numbers, or with an entry that a callback waits
// for, is told before anything was changed.
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
	if err := s.of.Prepare(ctx, m.State, batch); err != nil {
		return err
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
	return m.find(ctx, *e)
}

// find looks for the entries among those that the steps log.
func (m *Model) find(ctx context.Context, e expected) error {
	names := map[string]bool{}
	add := func(paths []string, suffix string) {
		for _, path := range paths {
			names[path+suffix] = true
			if _, name, ok := strings.Cut(path, "."); ok {
				names[name+suffix] = true
			}
		}
	}
	add(m.train.Entries(), "")
	if e.rate {
		add([]string{string(loop.Metrics) + "." + rateEntry}, "")
	}
	tests := slices.Sorted(maps.Keys(e.tests))
	for _, test := range tests { // what they log is what training logs, unless the network says otherwise
		add(m.train.Entries(), "_"+test)
	}
	known := func(entry string) bool { return names[entry] }
	if slices.ContainsFunc(e.entries, func(entry string) bool { return !known(entry) }) {
		for _, test := range tests {
			if err := m.test.Prepare(ctx, m.State, e.tests[test]); err != nil {
				return fmt.Errorf("test %q: %w", test, err)
			}
			add(m.test.Entries(), "_"+test)
		}
	}
	for _, entry := range e.entries {
		if known(entry) {
			continue
		}
		var short []string
		for name := range names {
			if !strings.Contains(name, ".") {
				short = append(short, name)
			}
		}
		slices.Sort(short)
		hint := ""
		if test, name, ok := strings.Cut(entry, "_"); ok && names[name+"_"+test] {
			hint = fmt.Sprintf("; did you mean %q?", name+"_"+test) // Keras's val_loss
		} else if near := nearest(entry, short); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return fmt.Errorf("a callback waits for %q: %w%s\n  there will be: %s", entry, loop.ErrNoEntry, hint, strings.Join(short, ", "))
	}
	return nil
}
