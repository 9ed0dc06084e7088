// Package timetable prints when the tasks and callbacks of a run are due.
package timetable

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

type Row struct {
	Name string
	// Steps are the first in which it is due; More: there may be others.
	Steps []int64
	More  bool
	// Open names the units on which it depends, if its steps are not known in advance.
	Open       string
	Start, End bool
	Block      int
	// Until is the run's end in steps, or "".
	Until string
}

// Table returns a heading and a table with a section for the tasks and one for the callbacks.
func Table(heading string, tasks, callbacks []Row) string {
	var s strings.Builder
	fmt.Fprintln(&s, heading)
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		name string
		list []Row
	}{{"tasks", tasks}, {"callbacks", callbacks}} {
		if len(part.list) > 0 {
			fmt.Fprintln(w, part.name)
		}
		for i, row := range part.list {
			fmt.Fprintf(w, "  %d\t%s\t%s\n", i+1, row.Name, row.when())
		}
	}
	w.Flush() // a strings.Builder returns no error
	return s.String()
}

func (r Row) when() string {
	var parts []string
	if r.Start {
		parts = append(parts, "at the start")
	}
	if r.Open != "" {
		parts = append(parts, "depends on "+r.Open)
	}
	if len(r.Steps) > 0 {
		steps := strings.ReplaceAll(strings.Trim(fmt.Sprint(r.Steps), "[]"), " ", ", ")
		if r.More {
			steps += ", …"
		}
		if len(r.Steps) == 1 && !r.More {
			steps = "step " + steps
		} else {
			steps = "steps " + steps
		}
		parts = append(parts, steps)
	}
	if r.End {
		parts = append(parts, "at the end")
	}
	if len(parts) == 0 && r.Until != "" {
		parts = append(parts, "not in "+r.Until)
	} else if len(parts) == 0 {
		parts = append(parts, "never")
	}
	if r.Block > 1 {
		parts = append(parts, fmt.Sprintf("in blocks of up to %d", r.Block))
	}
	return strings.Join(parts, "; ")
}
