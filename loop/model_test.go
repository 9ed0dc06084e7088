package loop_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

func checkProgram(t require.TestingT, p program, cut int, seen map[string]int) {
	want := p.follow(outcome{})
	got := p.run(t, outcome{}, nil)
	compare(t, "the run", want, got.outcome)
	plain := p.withoutBlocks().run(t, outcome{}, nil)
	compare(t, "the run without blocks", want, plain.outcome)
	for i := range got.errs { // a run whose batches wait learns of a fault later
		got.errs[i] = strings.Replace(got.errs[i], "; "+loop.ErrSourceLeft.Error(), "", 1)
		plain.errs[i] = strings.Replace(plain.errs[i], "; "+loop.ErrSourceLeft.Error(), "", 1)
	}
	require.Equal(t, plain.errs, got.errs)
	seen[want.reason.String()]++
	if len(want.errs) > 0 && strings.Contains(want.errs[0], loop.ErrSourceLeft.Error()) {
		seen["left behind"]++
	}
	seen["blocks"] += got.blocks
	if len(want.errs) > 1 && strings.Contains(want.errs[1], "at the end: ") {
		seen["two errors"]++
	}
	p.count(seen)

	// The first part ends with its data.
	first := p
	first.sizes = p.sizes[:cut]
	if p.faultAt >= cut {
		first.fault = ""
	}
	part, wantPart := first.run(t, outcome{}, nil), first.follow(outcome{})
	compare(t, "the first part", wantPart, part.outcome)
	if part.reason != loop.DataEnded {
		return
	}
	seen["resumed"]++
	rest, wantRest := p.run(t, part.outcome, part.history), p.follow(wantPart)
	compare(t, "the resumed part", wantRest, rest.outcome)
	if !p.hasMarks() && !p.watchesNothing() {
		seen["whole"]++
		rest.trace = slices.Concat(calls(part.trace), calls(rest.trace))
		want.trace = calls(want.trace)
		compare(t, "both parts together", want, rest.outcome)
	}
}

func compare(t require.TestingT, what string, want, got outcome) {
	text := strings.Join(got.errs, "\n")
	for _, e := range want.errs {
		require.Contains(t, text, e, what)
	}
	require.Equal(t, len(want.errs) > 0, text != "", "%s: %s", what, text)
	want.errs, got.errs = nil, nil
	want.all = nil // dropped rows cannot be read
	require.Equal(t, want, got, what)
}

// calls is a trace without the ends, and without the events of this run alone.
func calls(trace []event) (kept []event) {
	for _, e := range trace {
		if !strings.HasPrefix(e.call, "end of ") {
			kept = append(kept, event{call: e.call})
		}
	}
	return kept
}

func (p program) withoutBlocks() program {
	p.tasks = slices.Clone(p.tasks)
	for i := range p.tasks {
		p.tasks[i].block = 0
	}
	return p
}

func (p program) hasMarks() bool {
	marked := func(x part) bool { return x.entry == "" && (x.when.StartsAt() || x.when.EndsAt()) }
	return slices.ContainsFunc(p.tasks, marked) || slices.ContainsFunc(p.watchers, marked)
}

// watchesNothing reports that no task logs a watched name.
func (p program) watchesNothing() bool {
	return slices.ContainsFunc(p.watchers, func(w part) bool {
		return w.entry != "" && !slices.ContainsFunc(p.tasks, func(x part) bool { return slices.Contains(x.logs, w.entry) })
	})
}

func (p program) count(seen map[string]int) {
	if p.hasMarks() {
		seen["marks"]++
	}
	for i, x := range p.tasks {
		if i > 0 && x.block > 1 && p.tasks[0].block <= 1 {
			seen["in front"]++
		}
	}
	for _, w := range p.watchers {
		if w.entry != "" {
			seen["entries"]++
		}
	}
}

// Small programs of places that differed once, or nearly did, each cut everywhere.
func TestModel_onceDifferent(t *testing.T) {
	step := part{name: "task1", when: loop.EachStep, logs: []string{"a"}}
	block := part{name: "task1", when: loop.EachStep, logs: []string{"a"}, block: 8}
	does := func(p part, what string, at int) part { p.does, p.at = what, at; return p }
	named := func(name string, when loop.Schedule, logs ...string) part {
		return part{name: name, when: when, logs: logs}
	}
	entry := func(name string) part {
		return part{name: "watcher1", when: loop.EachStep.AndAtStart().AndAtEnd(), entry: name}
	}
	parts := func(p ...part) []part { return p }
	third, sixth := loop.At(loop.Steps(3)), loop.At(loop.Steps(6))
	for _, row := range []struct {
		name            string
		tasks, watchers []part
		keep            loop.Schedule
		fault           string
		faultAt         int
	}{
		{name: "a watcher fails: the row is there once", tasks: parts(step), watchers: parts(does(named("watcher1", third), "error", 3))},
		{name: "a turn that fails half way is kept if it would be", tasks: parts(step, does(named("task2", third), "error", 2)), keep: loop.Every(loop.Steps(2))},
		{name: "the end sees what was logged in a turn that failed", tasks: parts(step, does(named("task2", third), "error", 2)), watchers: parts(named("watcher1", sixth))},
		{name: "an unknown entry is found at the start", tasks: parts(named("task1", loop.AtStart)), watchers: parts(entry("b"))},
		{name: "a start that fails keeps what was logged in it", tasks: parts(named("task1", loop.AtStart, "a"), does(named("task2", loop.AtStart), "error", 0))},
		{name: "an end that fails keeps what was logged in it", tasks: parts(step, named("task2", loop.AtEnd, "b"), does(named("task3", loop.AtEnd), "error", 11))},
		{name: "the first batch is negative behind a start", tasks: parts(step, named("task2", loop.AtStart)), fault: "negative"},
		{name: "the data panics behind a block", tasks: parts(block), fault: "panic", faultAt: 5},
		{name: "a batch is negative behind a block", tasks: parts(block), fault: "negative", faultAt: 5},
		{name: "the data panics behind a block that stops", tasks: parts(does(block, "stop", 4), named("task2", loop.AtEnd)), fault: "panic", faultAt: 5},
		{name: "the run is cancelled behind a block that stops", tasks: parts(does(block, "stop", 4), named("task2", loop.AtEnd)), fault: "cancel", faultAt: 5},
		{name: "a watched entry is logged in front of a block", tasks: parts(named("task2", sixth, "b"), block), watchers: parts(entry("b"))},
		{name: "a task in front of a block is the last that could log an entry", tasks: parts(named("task2", sixth), block), watchers: parts(entry("b"))},
		{name: "a task stops in front of a block that fails", tasks: parts(does(named("task2", sixth), "stop", 5), does(block, "error", 5))},
		{name: "a task stops in front of a block that stops", tasks: parts(does(named("task2", sixth), "stop", 5), does(block, "stop", 5))},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := program{tasks: row.tasks, watchers: row.watchers, keep: row.keep, fault: row.fault, faultAt: row.faultAt, sizes: []int{1, 2, 0, 3, 1, 2, 1, 4, 1, 1, 0, 2}}
			if row.keep.String() == loop.Never.String() {
				p.keep = loop.EachStep
			}
			for cut := range p.sizes {
				synctest.Test(t, func(t *testing.T) { checkProgram(t, p, cut, map[string]int{}) })
			}
		})
	}
}
