package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/runs"
)

type runsTable struct {
	Columns []string
	Rows    []runsRow
}

type runsRow []runsCell

// runsCell is a number or a text. The zero cell is empty.
type runsCell struct {
	Text, Shown string
	// Number is NaN of a text.
	Number float64
}

func textCell(text string) runsCell { return runsCell{text, text, math.NaN()} }

func valueCell(text string) runsCell {
	c := textCell(text)
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		c.Number = x
	}
	return c
}

func numberCell(x float64) runsCell {
	return runsCell{strconv.FormatFloat(x, 'g', -1, 64), strconv.FormatFloat(x, 'g', 6, 64), x}
}

// IsNumber is false of NaN.
func (c runsCell) IsNumber() bool { return c.Text != "" && !math.IsNaN(c.Number) }

func tableOf(all []runs.Run) *runsTable {
	t := &runsTable{Rows: make([]runsRow, len(all))}
	add := func(name string, of func(r *runs.Run) runsCell) {
		t.Columns = append(t.Columns, name)
		for i := range all {
			t.Rows[i] = append(t.Rows[i], of(&all[i]))
		}
	}
	add("name", func(r *runs.Run) runsCell { return textCell(r.Name) })
	add("status", func(r *runs.Run) runsCell { return textCell(cmp.Or(string(r.Status), "unknown")) })
	add("steps", func(r *runs.Run) runsCell { return valueCell(strconv.FormatInt(r.Steps, 10)) })
	if slices.ContainsFunc(all, func(r runs.Run) bool { return r.Epochs > 0 }) {
		add("epochs", func(r *runs.Run) runsCell { return valueCell(strconv.FormatInt(r.Epochs, 10)) })
	}
	add("duration", func(r *runs.Run) runsCell {
		c := numberCell(r.Duration.Seconds())
		c.Shown = r.Duration.Round(time.Millisecond).String()
		return c
	})
	for _, name := range differing(all) {
		add(name, func(r *runs.Run) runsCell { return valueCell(r.Settings[name]) })
	}
	for _, e := range entriesOf(all) {
		if e.hasBest {
			add("best "+e.name, func(r *runs.Run) runsCell {
				v, ok := r.Values[e.path]
				if !ok || math.IsNaN(v.Best) {
					return runsCell{}
				}
				return numberCell(v.Best)
			})
		}
		add("last "+e.name, func(r *runs.Run) runsCell {
			v, ok := r.Values[e.path]
			if !ok {
				return runsCell{}
			}
			return numberCell(v.Last)
		})
	}
	if slices.ContainsFunc(all, func(r runs.Run) bool { return r.Why != "" }) {
		add("end", func(r *runs.Run) runsCell { return textCell(r.Why) })
	}
	return t
}

func differing(all []runs.Run) []string {
	first, counts, differ, with := map[string]string{}, map[string]int{}, map[string]bool{}, 0
	for i := range all {
		if len(all[i].Settings) > 0 {
			with++
		}
		for name, value := range all[i].Settings {
			if counts[name] == 0 {
				first[name] = value
			}
			counts[name]++
			differ[name] = differ[name] || first[name] != value
		}
	}
	for name, n := range counts {
		differ[name] = differ[name] || n < with
	}
	maps.DeleteFunc(differ, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(differ))
}

type runsEntry struct {
	path, name string
	hasBest    bool
}

func entriesOf(all []runs.Run) (entries []runsEntry) {
	hasBest, named := map[string]bool{}, map[string]int{}
	for i := range all {
		for path, v := range all[i].Values {
			if _, known := hasBest[path]; !known {
				_, name, _ := strings.Cut(path, ".")
				named[name]++
			}
			hasBest[path] = hasBest[path] || v.Mode != 0
		}
	}
	for _, path := range slices.Sorted(maps.Keys(hasBest)) {
		_, name, _ := strings.Cut(path, ".")
		if named[name] > 1 {
			name = path
		}
		entries = append(entries, runsEntry{path, name, hasBest[path]})
	}
	return entries
}

func (t *runsTable) column(name string) (int, error) {
	i := slices.Index(t.Columns, name)
	if i < 0 {
		quoted := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			quoted[i] = strconv.Quote(c)
		}
		return 0, fmt.Errorf("there is no column %q; the columns are %s", name, strings.Join(quoted, ", "))
	}
	return i, nil
}

func (t *runsTable) sort(by string) error {
	i, err := t.column(by)
	sign := 1
	if rest, down := strings.CutPrefix(by, "-"); err != nil && down {
		sign = -1
		i, err = t.column(rest)
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(t.Rows, func(x, y runsRow) int {
		a, b := x[i], y[i]
		rank := func(c runsCell) int {
			switch {
			case c.IsNumber():
				return 0
			case c.Text != "":
				return 1
			}
			return 2
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), sign*compareCells(a, b))
	})
	return nil
}

func compareCells(a, b runsCell) int {
	if a.IsNumber() && b.IsNumber() {
		return cmp.Compare(a.Number, b.Number)
	}
	return strings.Compare(a.Text, b.Text)
}

// Longer ones before their beginnings.
var runsOperators = []string{"!=", "<=", ">=", "=", "<", ">", "~"}

// filter keeps the rows for which "COLUMN OP VALUE" holds.
func (t *runsTable) filter(text string) error {
	at, op := len(text), ""
	for _, o := range runsOperators {
		if i := strings.Index(text, " "+o+" "); i >= 0 && i < at {
			at, op = i, o
		}
	}
	if op == "" {
		return fmt.Errorf("the filter %q is not 'COLUMN OP VALUE', with spaces around OP, one of %s", text, strings.Join(runsOperators, " "))
	}
	i, err := t.column(strings.TrimSpace(text[:at]))
	if err != nil {
		return err
	}
	want := valueCell(strings.TrimSpace(text[at+len(op)+2:]))
	if d, err := time.ParseDuration(want.Text); err == nil && t.Columns[i] == "duration" {
		want.Number = d.Seconds()
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(r runsRow) bool { return r[i].Text == "" || !holds(r[i], op, want) })
	return nil
}

// holds compares a number with a text by = and != alone.
func holds(c runsCell, op string, want runsCell) bool {
	order := compareCells(c, want)
	comparable := c.IsNumber() == want.IsNumber()
	switch op {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return comparable && order < 0
	case "<=":
		return comparable && order <= 0
	case ">":
		return comparable && order > 0
	case ">=":
		return comparable && order >= 0
	}
	return strings.Contains(c.Text, want.Text)
}
