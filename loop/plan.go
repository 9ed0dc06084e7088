package loop

import (
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/internal/timetable"
)

// Plan has the steps in which a run's tasks and callbacks are due. Its String is a table.
type Plan struct {
	// Until is nil if only the data ends the run.
	From  Elapsed
	Until Period
	// Entries are the names for which callbacks wait.
	Entries  []string
	Prepares []string
	// In the order of calls, changes among the callbacks.
	tasks, callbacks []timetable.Row
}

// Plan checks the loop and its options as [Loop.Run] does, without a run. It calls only schedules, BlockSize and
// [Callback].WhenRun.
func (l Loop[S, B]) Plan(options ...Option) (Plan, error) {
	r := &run[S, B]{settings: newSettings(options, nil), tasks: l.tasks}
	if err := r.check(false); err != nil {
		return Plan{}, fmt.Errorf("loop: %w", err)
	}
	p := Plan{From: r.from, Until: r.until}
	for _, prepare := range r.prepares {
		p.Prepares = append(p.Prepares, prepare.name)
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		planned := p.of(t.when, t.String())
		if t.block != nil && !r.single {
			if err := shield.Run(func() error { planned.Block = t.block.BlockSize(); return nil }); err != nil {
				return Plan{}, fmt.Errorf("loop: task %d (%s): block size: %w", i+1, t.String(), err)
			}
		}
		p.tasks = append(p.tasks, planned)
	}
	for i := range r.hooks {
		h := &r.hooks[i]
		if h.Entry != "" {
			p.wait(h.String(), h.Entry)
		} else {
			p.callbacks = append(p.callbacks, p.of(h.When, h.String()))
		}
		for _, name := range h.Needs {
			p.wait(onEach(name, h.Name), name)
		}
	}
	return p, nil
}

func (p *Plan) wait(callback, entry string) {
	p.callbacks = append(p.callbacks, timetable.Row{Name: callback, Open: "an entry"})
	p.Entries = append(p.Entries, entry)
}

const plannedSteps = 4

func (p Plan) of(when Schedule, name string) timetable.Row {
	due := timetable.Row{Name: name, Start: when.starts, End: when.ends}
	if n, isSteps := p.Until.(Steps); isSteps && n > 0 && when.rule != nil {
		due.Until = n.String()
	}
	needs := when.needs()
	var on []string
	for _, unit := range []struct {
		name string
		is   bool
	}{{"samples", needs.samples}, {"epochs", needs.epochs}, {"time", needs.clock}} {
		if unit.is {
			on = append(on, unit.name)
		}
	}
	if due.Open = strings.Join(on, " or "); due.Open == "" {
		due.Steps, due.More = when.firstSteps(p.From.Steps, p.Until, plannedSteps)
	}
	return due
}

func (p Plan) String() string {
	from, until := "", "until the data ends"
	if p.From.Steps > 0 {
		from = fmt.Sprintf("from %s, ", Steps(p.From.Steps))
	}
	if p.Until != nil {
		until = "until " + p.Until.String()
	}
	return timetable.Table(from+until, p.tasks, p.callbacks)
}
