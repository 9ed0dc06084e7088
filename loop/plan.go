package loop

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Plan says in which steps the tasks and callbacks of a run are due, before it begins.
type Plan struct {
	// From and Until are where the run begins and ends; Until is nil if only the data ends it.
	From  Elapsed
	Until Period
	// Tasks and Callbacks are in the order in which they are called; Callbacks includes the changes.
	Tasks, Callbacks []Planned
}

// Planned is when one task or callback is due.
type Planned struct {
	// Name is its schedule, and its name if it has one, as in errors.
	Name string
	// Steps are the first steps in which it is due, at most 4; More says that there may be others.
	Steps []int64
	More  bool
	// Open says what the steps depend on where they are not known beforehand: "samples", "epochs", "time", several
	// of these with "or", or "an entry"; otherwise it is empty.
	Open       string
	Start, End bool // due at the start or the end of the run
	// Entry is the name that a callback waits for, "" if it waits for none.
	Entry string
	block int
	until Period // the end of the run, if the schedule is due in a longer one
}

// Plan is a dry run: it checks the loop and its options as [Loop.Run] does, and calls nothing but schedules, BlockSize
// and the functions of [Callback].WhenRun. It leaves out what a [Prepare] would add.
func (l Loop[S, B]) Plan(options ...Option) (Plan, error) {
	r := &run[S, B]{settings: newSettings(options, nil), tasks: l.tasks}
	if err := r.check(false); err != nil {
		return Plan{}, fmt.Errorf("loop: %w", err)
	}
	p := Plan{From: r.from, Until: r.until}
	for i := range r.tasks {
		t := &r.tasks[i]
		planned := p.of(t.when, t.String())
		if t.block != nil && !r.single {
			if err := shield.Run(func() error { planned.block = t.block.BlockSize(); return nil }); err != nil {
				return Plan{}, fmt.Errorf("loop: task %d (%s): block size: %w", i+1, t.String(), err)
			}
		}
		p.Tasks = append(p.Tasks, planned)
	}
	for i := range r.hooks {
		h := &r.hooks[i]
		planned := p.of(h.When, h.String())
		if h.Entry != "" {
			planned = Planned{Name: h.String(), Open: "an entry", Entry: h.Entry}
		}
		p.Callbacks = append(p.Callbacks, planned)
		for _, name := range h.needs {
			p.Callbacks = append(p.Callbacks, Planned{Name: onEach(name, h.Name), Open: "an entry", Entry: name})
		}
	}
	return p, nil
}

const plannedSteps = 4

func (p Plan) of(when Schedule, name string) Planned {
	planned := Planned{Name: name, Start: when.starts, End: when.ends}
	if n, isSteps := p.Until.(Steps); isSteps && n > 0 && when.rule != nil {
		planned.until = p.Until
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
	if planned.Open = strings.Join(on, " or "); planned.Open == "" {
		planned.Steps, planned.More = when.firstSteps(p.From.Steps, p.Until, plannedSteps)
	}
	return planned
}

// String is a table.
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
		list []Planned
	}{{"tasks", p.Tasks}, {"callbacks", p.Callbacks}} {
		if len(part.list) > 0 {
			fmt.Fprintln(w, part.name)
		}
		for i, planned := range part.list {
			fmt.Fprintf(w, "  %d\t%s\t%s\n", i+1, planned.Name, planned.when())
		}
	}
	w.Flush() // a strings.Builder takes all
	return s.String()
}

func (p Planned) when() string {
	var parts []string
	if p.Start {
		parts = append(parts, "at the start")
	}
	if p.Open != "" {
		parts = append(parts, "depends on "+p.Open)
	}
	if len(p.Steps) > 0 {
		steps := strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Steps), "[]"), " ", ", ")
		if p.More {
			steps += ", …"
		}
		if len(p.Steps) == 1 && !p.More {
			steps = "step " + steps
		} else {
			steps = "steps " + steps
		}
		parts = append(parts, steps)
	}
	if p.End {
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
