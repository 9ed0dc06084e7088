package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/metrics/plots"
)

type loss struct {
	example int
	value   float64
}

const (
	mostCandidates = 64
	mostColumns    = 6
	mostText       = 600
)

// worst are the examples of the highest loss. Of many, the candidates are those of the greatest errors: one evaluation
// for each example of a large set would take too long.
func (a *answers) worst(ctx context.Context) (all []loss, err error) {
	weights := a.weights()
	for _, i := range a.candidates(weights) {
		one, err := a.given.Gather([]int{i})
		if err != nil {
			return nil, err
		}
		figures, err := a.model.Evaluate(ctx, one)
		if err != nil {
			return nil, fmt.Errorf("example %d: %w", i, err)
		}
		value, ok := figures["loss"]
		if own, several := figures[a.output+"_loss"]; several {
			value, ok = own, true
		}
		if !ok {
			return nil, errors.New("there is no loss of this output in Evaluate's figures")
		}
		all = append(all, loss{i, value})
	}
	slices.SortStableFunc(all, func(a, b loss) int {
		return cmp.Or(cmp.Compare(nan(b.value), nan(a.value)), cmp.Compare(b.value, a.value))
	})
	return all[:min(len(all), mostWrong)], nil
}

func nan(v float64) int {
	if math.IsNaN(v) {
		return 1
	}
	return 0
}

func (a *answers) candidates(weights []float64) (rows []int) {
	n := a.p.Len()
	badness := func(i int) float64 {
		switch {
		case weights != nil && weights[i] == 0:
			return math.Inf(-1)
		case a.errors == nil:
			return 0
		case weights != nil:
			return a.errors[i] * weights[i]
		}
		return a.errors[i]
	}
	for i := range n {
		if !math.IsInf(badness(i), -1) {
			rows = append(rows, i)
		}
	}
	if len(rows) <= mostCandidates {
		return rows
	}
	if a.errors == nil {
		spaced := make([]int, mostCandidates)
		for k := range spaced {
			spaced[k] = rows[k*len(rows)/mostCandidates]
		}
		return spaced
	}
	slices.SortStableFunc(rows, func(i, j int) int {
		return cmp.Or(cmp.Compare(nan(badness(j)), nan(badness(i))), cmp.Compare(badness(j), badness(i)))
	})
	return rows[:mostCandidates]
}

func worstOf(a *answers, worst []loss) string {
	of := fmt.Sprintf("of %d evenly spaced ones", mostCandidates)
	switch n := a.p.Len(); {
	case n <= mostCandidates:
		of = fmt.Sprintf("of %d", n)
	case a.errors != nil:
		of = fmt.Sprintf("of the %d of %d with %s", mostCandidates, n, a.errorName)
	}
	return fmt.Sprintf("Not a random choice: the %d examples with the highest loss %s", len(worst), of)
}

func (a *answers) drawWorst(worst []loss, d *draft) error {
	var chosen []int
	for _, l := range worst {
		chosen = append(chosen, l.example)
	}
	set, err := a.given.Gather(chosen)
	if err != nil {
		return err
	}
	columns := a.columns(set)
	head := []string{"example", "label", "answer", "loss"}
	if len(columns) > 0 && len(columns) <= mostColumns {
		for _, c := range columns {
			head = append(head, c.name)
		}
	} else if len(columns) > 0 {
		head = append(head, "inputs")
	}
	var rows [][]string
	for k, l := range worst {
		row := []string{fmt.Sprint(l.example), a.truth(l.example), a.answer(l.example), fmt.Sprintf("%.6g", l.value)}
		var parts []string
		for _, c := range columns {
			if len(columns) <= mostColumns {
				row = append(row, c.of(k))
			}
			parts = append(parts, c.name+" "+c.of(k))
		}
		if len(columns) > mostColumns {
			row = append(row, strings.Join(parts, "; "))
		}
		rows = append(rows, row)
	}
	how := worstOf(a, worst) + ". It is Evaluate's of the example alone."
	d.draw(plots.Table("Worst examples", head, rows...).Caption(how))
	return nil
}

type column struct {
	name string
	of   func(i int) string
}

// columns are the set's fields of one number or text for each example, else those of an input of up to 40 numbers.
func (a *answers) columns(set *data.Set) (all []column) {
	none := []string{data.Mask, a.labelField, a.about.Card.SampleWeights}
	if a.prepared != nil {
		_, labels := a.prepared.Columns()
		none = append(none, labels...)
	}
	for _, f := range set.Fields() {
		if len(f.Array.Dims) == 1 && !slices.Contains(none, f.Name) {
			all = append(all, column{f.Name, cells(f.Array, 1, 0)})
		}
	}
	for _, f := range set.Fields() {
		if len(all) > 0 || len(f.Array.Dims) != 2 || f.Array.Dims[1] > 40 || !slices.Contains(a.inputs, f.Name) {
			continue
		}
		for k, name := range columnNames(f) {
			all = append(all, column{name, cells(f.Array, f.Array.Dims[1], k)})
		}
	}
	return all
}

func cells(of data.Array, width, at int) func(i int) string {
	if texts, ok := of.Flat.([]string); ok {
		return func(i int) string {
			text := texts[i*width+at]
			if len(text) > mostText {
				text = strings.ToValidUTF8(text[:mostText], "")
				text += fmt.Sprintf("… (%d characters)", utf8.RuneCountInString(texts[i*width+at]))
			}
			return text
		}
	}
	values := numbers(of.Flat)
	return func(i int) string { return fmt.Sprintf("%.5g", values[i*width+at]) }
}

func columnNames(f data.Field) []string {
	names := make([]string, f.Array.Dims[len(f.Array.Dims)-1])
	for k := range names {
		names[k] = fmt.Sprintf("%s[%d]", f.Name, k)
	}
	return names
}
