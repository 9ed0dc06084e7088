package loop

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Plan says in which steps the tasks and callbacks of a run are due, before it begins. Its String is a table.
type Plan struct {
	// From and Until are where the run begins and ends; Until is nil if only the data ends it.
	From  Elapsed
	Until Period
	// Entries are the names for which callbacks wait.
	Entries []string
	// Prepares are the names of the options [Prepare], which the plan leaves out.
	Prepares []string
	// These are in the order in which they are called. The changes are among the callbacks.
	tasks, callbacks []planned
}

// planned is when one task or callback is due.
type planned struct {
	name string // its schedule, and its name if it has one, as in errors
	// steps are the first steps in which it is due, at most plannedSteps; more says that there may be others.
	steps      []int64
	more       bool
	open       string // what the steps depend on where they are not known beforehand
	start, end bool   // due at the start or the end of the run
	block      int
	until      Period // the end of the run, if the schedule is due in a longer one
}

// Plan is a dry run: it checks the loop and its options as [Loop.Run] does, and calls nothing but schedules, BlockSize
// and the functions of [Callback].WhenRun. It leaves out what a [Prepare] would add.
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
			if err := shield.Run(func() error { planned.block = t.block.BlockSize(); return nil }); err != nil {
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

// wait adds a callback that waits for an entry.
func (p *Plan) wait(callback, entry string) {
	p.callbacks = append(p.callbacks, planned{name: callback, open: "an entry"})
	p.Entries = append(p.Entries, entry)
}

const plannedSteps = 4

func (p Plan) of(when Schedule, name string) planned {
	due := planned{name: name, start: when.starts, end: when.ends}
	if n, isSteps := p.Until.(Steps); isSteps && n > 0 && when.rule != nil {
		due.until = p.Until
	}
	n := when.needs()
	var on []string
	for _, unit := range []struct {
		name string
		is   bool
	}{{"samples", n.samples}, {"epochs", n.epochs}, {"time", n.clock}} {
		if unit.is {
			on = append(on, unit.name)
		}
	}
	if due.open = strings.Join(on, " or "); due.open == "" {
		due.steps, due.more = when.firstSteps(p.From.Steps, p.Until, plannedSteps)
	}
	return due
}

func (p Plan) String() string {
	var s strings.Builder
	if p.From.Steps > 0 {
		fmt.Fprintf(&s, "from %s, ", Steps(p.From.Steps))
	}
	if p.Until == nil {
		fmt.Fprintln(&s, "until the data ends")
	} else {
		fmt.Fprintf(&s, "until %s\n", p.Until)
	}
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		name string
		list []planned
	}{{"tasks", p.tasks}, {"callbacks", p.callbacks}} {
		if len(part.list) > 0 {
			fmt.Fprintln(w, part.name)
		}
		for i, planned := range part.list {
			fmt.Fprintf(w, "  %d\t%s\t%s\n", i+1, planned.name, planned.when())
		}
	}
	w.Flush() // a strings.Builder takes all
	return s.String()
}

func (p planned) when() string {
	var parts []string
	if p.start {
		parts = append(parts, "at the start")
	}
	if p.open != "" {
		parts = append(parts, "depends on "+p.open)
	}
	if len(p.steps) > 0 {
		steps := strings.ReplaceAll(strings.Trim(fmt.Sprint(p.steps), "[]"), " ", ", ")
		if p.more {
			steps += ", …"
		}
		if len(p.steps) == 1 && !p.more {
			steps = "step " + steps
		} else {
			steps = "steps " + steps
		}
		parts = append(parts, steps)
	}
	if p.end {
		parts = append(parts, "at the end")
	}
	if len(parts) == 0 && p.until != nil {
		parts = append(parts, "not in "+p.until.String())
	} else if len(parts) == 0 {
		parts = append(parts, "never")
	}
	if p.block > 1 {
		parts = append(parts, fmt.Sprintf("in blocks of up to %d", p.block))
	}
	return strings.Join(parts, "; ")
}
