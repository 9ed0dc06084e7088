package plots

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/loop"
)

// History draws a run's logs, with a panel per figure: training as a solid line, validation dashed in the same
// colour. "val_loss" or "loss_val" is the validation of "loss". names select the figures, by default all losses and
// metrics that are numbers, without "avg_loss" if there is a "loss". Learning rates ("learning_rate",
// "learning_rate_<group>") share the last panel, on a log axis if all are above 0. Named entries of any
// other collection share its panel.
//
// The x axis shows epochs if the history has an entry "epoch", interpolated by step, else steps.
//
// A dot marks the best value, of validation if drawn, else of training: the lowest for entries in [loop.Losses], the
// highest for a metric dice, else by the name, as [loop.Mode]. Other figures have no dot.
//
// If few large values would flatten the others, and all are above 0, the axis is logarithmic. Non-finite values and
// those beyond 1e300 leave gaps, which the legend counts. Thousands of rows are thinned to local extremes. A page has a
// table of last, lowest and highest values.
func History(h *loop.History, names ...string) *Figure {
	f := &Figure{title: "History"}
	charts, err := charts(h, names)
	if err != nil {
		return failed("history", err)
	}
	f.table = [][]string{{"name", "last", "lowest", "highest"}}
	for _, c := range charts {
		f.panels = append(f.panels, c.panel())
		f.table = append(f.table, c.rows...)
	}
	return f
}

type series struct {
	loop.Entry
	of         string // its figure
	validation bool
	shared     bool // a line among others of its figure
	steps      []int64
	values     []float64
}

const rates = "learning rate"

// Other collections are a figure each.
var own = []loop.Collection{loop.Losses, loop.Metrics, loop.Stateful, loop.Outputs}

func charts(h *loop.History, names []string) (all []chart, err error) {
	if h == nil || h.Len() == 0 {
		return nil, errors.New("the history has no rows")
	}
	found, epochs, err := collect(h, names)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.of, b.of), cmp.Compare(btoi(a.validation),
			btoi(b.validation)))
	})
	for len(found) > 0 {
		n := slices.IndexFunc(found, func(s series) bool { return s.of != found[0].of })
		if n < 0 {
			n = len(found)
		}
		all = append(all, chartOf(found[:n], epochs))
		found = found[n:]
	}
	return all, nil
}

func (s series) rank() int {
	switch {
	case s.of == rates:
		return 3
	case s.of == "loss":
		return 0
	case s.Collection == loop.Losses:
		return 1
	}
	return 2
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func collect(h *loop.History, names []string) (found []series, epochs series, err error) {
	at, several := map[string]int{}, map[string]int{}
	for elapsed, logs := range h.Rows() {
		for e := range logs.All() {
			if e.Name == "epoch" {
				if v, err := e.Value.Float(); err == nil {
					epochs.steps, epochs.values = append(epochs.steps, elapsed.Steps), append(epochs.values, v)
				}
				continue
			}
			named := slices.Contains(names, e.Name) || slices.Contains(names, e.Path())
			kind := e.Collection == loop.Losses || e.Collection == loop.Metrics || e.Collection == loop.Stateful
			if !named && (len(names) > 0 || !kind && !isRate(e.Name)) {
				continue
			}
			v, err := e.Value.Float()
			if err != nil && !e.IsNumber() && !named {
				continue
			}
			if err != nil {
				return nil, epochs, fmt.Errorf("%s of step %d: %w", e.Path(), elapsed.Steps, err)
			}
			i, known := at[e.Path()]
			if !known {
				i = len(found)
				at[e.Path()] = i
				found = append(found, series{Entry: loop.Entry{Collection: e.Collection, Name: e.Name}})
				several[e.Name]++
			}
			found[i].steps, found[i].values = append(found[i].steps, elapsed.Steps), append(found[i].values, v)
		}
	}
	if len(names) > 0 {
		return chosen(h, found, epochs, names, several)
	}
	found = slices.DeleteFunc(found, func(s series) bool {
		plain, mean := strings.CutPrefix(s.Name, "avg_")
		return mean && several[plain] > 0
	})
	if len(found) == 0 {
		return nil, epochs, errors.New("the history has no losses or metrics that are numbers")
	}
	return named(found, several), epochs, nil
}

func chosen(h *loop.History, found []series, epochs series, names []string, several map[string]int) (of []series,
	_ series, err error) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, epochs, fmt.Errorf("%q is named twice", name)
		}
		if _, _, err := h.Series(name); err != nil { // unknown, or in two collections
			return nil, epochs, err
		}
		k := slices.IndexFunc(found, func(s series) bool { return s.Name == name || s.Path() == name })
		if k < 0 {
			return nil, epochs, fmt.Errorf("%q is the position of a row: name a loss or a metric", name)
		}
		of = append(of, found[k])
	}
	return named(of, several), epochs, nil
}

func named(found []series, several map[string]int) []series {
	for i := range found {
		s := &found[i]
		s.of = s.Name
		for _, cut := range []func() (string, bool){
			func() (string, bool) { return strings.CutPrefix(s.Name, "val_") },
			func() (string, bool) { return strings.CutSuffix(s.Name, "_val") },
		} {
			if of, ok := cut(); ok && of != "" && !s.validation {
				s.of, s.validation = of, true
			}
		}
		if several[s.Name] > 1 {
			s.of = string(s.Collection) + "." + s.of
		}
		switch {
		case isRate(s.Name):
			s.of, s.validation, s.shared = rates, false, true
		case !slices.Contains(own, s.Collection):
			s.of, s.validation, s.shared = string(s.Collection), false, true
		}
	}
	return found
}

func isRate(name string) bool {
	return name == "learning_rate" || strings.HasPrefix(name, "learning_rate_")
}

func chartOf(of []series, epochs series) chart {
	c := chart{title: of[0].of, xLabel: "step"}
	name := c.title
	inEpochs := len(epochs.values) > 0
	if inEpochs {
		c.xLabel = "epoch"
	}
	var xs, ys [][]float64
	for i := range of {
		x := make([]float64, len(of[i].steps))
		for k, step := range of[i].steps {
			x[k] = float64(step)
		}
		if inEpochs {
			epochs.place(x)
		}
		xs, ys = append(xs, x), append(ys, of[i].values)
	}
	c.x, c.y = around(xs...), around(ys...).wider()
	c.x.whole = true
	switch {
	case name != rates && flattened(ys):
		c.y = decades(ys...)
		c.figure = " (logarithmic)"
	case name == rates:
		if positive(ys) {
			c.y = decades(ys...)
		} else {
			c.notes = append(c.notes, note{figure: "a rate is 0 or below: the axis is linear"})
		}
	}
	for i, s := range of {
		l := line{name: s.role(), colour: colours[0], dashes: full}
		if s.validation {
			l.dashes = dashed
		}
		if s.shared {
			l.name, l.colour = s.Name, colours[i%len(colours)]
			if i >= len(colours) {
				l.dashes = dashed
			}
		}
		gaps := 0
		for _, v := range s.values {
			gaps += btoi(!finite(v))
		}
		if gaps > 0 {
			c.notes = append(c.notes, note{l.name, fmt.Sprintf(": %d of %d not finite", gaps, len(s.values))})
		}
		low, high := extent(s.values)
		c.rows = append(c.rows, []string{s.Name, number(s.values[len(s.values)-1]), number(low), number(high)})
		l.x, l.y = thinned(xs[i], s.values, 300)
		c.lines = append(c.lines, l)
	}
	best := len(of) - 1
	if k := of[best].best(); k >= 0 && !of[best].shared {
		x, y := xs[best][k], of[best].values[k]
		c.lines = append(c.lines, line{name: fmt.Sprintf("best: %s, %s %s", number(y), c.xLabel,
			number(math.Round(x*100)/100)),
			x: []float64{x}, y: []float64{y}, colour: color.Color(vermilion), dots: true})
	}
	c.alt = fmt.Sprintf("%s%s by %s", c.title, c.figure, c.xLabel)
	for _, l := range c.lines {
		c.alt += ", " + l.name
		if end := len(l.y) - 1; !l.dots && finite(l.y[end]) {
			c.alt += " ends at " + number(l.y[end])
		}
	}
	return c
}

func (s series) role() string {
	if s.validation {
		return "validation"
	}
	return "training"
}

func flattened(lists [][]float64) bool {
	if !positive(lists) {
		return false
	}
	low, high := extent(lists...)
	some, below := 0, 0
	for _, list := range lists {
		for _, v := range list {
			some += btoi(finite(v))
			below += btoi(finite(v) && v-low <= (high-low)/100)
		}
	}
	return high/low >= 1000 && 10*below >= 9*some
}

func positive(lists [][]float64) bool {
	low, high := extent(lists...)
	return low > 1e-290 && low <= high
}

// place converts steps to epochs by interpolation. An epoch ends at its last row.
func (s series) place(x []float64) {
	steps, epochs := []float64{}, []float64{}
	for i, v := range s.values {
		if n := len(epochs); n > 0 && epochs[n-1] == v {
			steps[n-1] = float64(s.steps[i])
			continue
		}
		steps, epochs = append(steps, float64(s.steps[i])), append(epochs, v)
	}
	if len(epochs) == 1 { // from the run's start
		steps, epochs = []float64{0, steps[0]}, []float64{0, epochs[0]}
	}
	for i, at := range x {
		k, _ := slices.BinarySearch(steps, at)
		k = min(max(k, 1), len(steps)-1)
		x[i] = epochs[k-1] + (at-steps[k-1])/(steps[k]-steps[k-1])*(epochs[k]-epochs[k-1])
	}
}

func (s series) best() int {
	mode, known := s.mode()
	at := -1
	for i, v := range s.values {
		if known && finite(v) && (at < 0 || better.Than(mode, v, s.values[at], 0)) {
			at = i
		}
	}
	return at
}

func (s series) mode() (mode loop.Mode, known bool) {
	if s.Collection == loop.Losses {
		return loop.Lowest, true
	}
	mode, err := better.Of(mode, s.of)
	if err != nil && strings.HasSuffix(strings.ToLower(s.of), "dice") { // a metric here
		return loop.Highest, true
	}
	return mode, err == nil
}
