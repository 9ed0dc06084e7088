package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute/shapes"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics/plots"
)

// Run has the subjects of a report. Only Model is required.
type Run struct {
	// Title is by default "Report".
	Title string
	Model *flaxlike.Model
	// History is the result of Fit.
	History *loop.History
	// Test has examples that the model was not trained on, for its figures and, of a classifier, the confusion matrix,
	// curves and input images.
	Test *data.Set
	// Output is the output to report, and Label its labels' field, by default the only output and "y".
	Output, Label string
	// Classes are class names, by default the model's (flaxlike.WithClasses) or numbers. They are an error for a model
	// that is no classifier.
	Classes []string
	// Images is a field [examples, height, width, 1 or 3], by default "x" if it has that shape.
	Images string
}

// Save writes report.html, which needs no other file, into a folder, which it creates. The section "Not drawn" lists
// plots that this model or data does not allow, with reasons. Unknown fields and outputs, and class names that do not
// fit, are errors.
func (r Run) Save(ctx context.Context, dir string) error {
	page, err := r.page(ctx)
	if err == nil {
		err = page.Save(dir)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

type draft struct {
	figures, notDrawn []plots.Row
	drawn             []*plots.Figure
}

func (d *draft) draw(f *plots.Figure) {
	if err := f.Err(); err != nil {
		d.leaveOut(f.Title(), err)
		return
	}
	d.drawn = append(d.drawn, f)
}

func (d *draft) leaveOut(what string, err error) {
	d.notDrawn = append(d.notDrawn, plots.Row{Name: what, Value: err.Error()})
}

func (r Run) page(ctx context.Context) (plots.Report, error) {
	if r.Model == nil {
		return plots.Report{}, errors.New("the model is nil")
	}
	page := plots.Report{Title: r.Title}
	if r.Title == "" {
		page.Title = "Report"
	}
	var d draft
	if r.History == nil {
		d.leaveOut("History", errors.New("no history was given"))
	} else {
		d.draw(plots.History(r.History))
	}
	if r.Test == nil {
		if r.Classes != nil || r.Images != "" || r.Output != "" || r.Label != "" {
			return page, errors.New("the page has Classes, Images, Output or Label, but no Test set: set Test too")
		}
		d.leaveOut("Figures of a test set", errors.New("no test set was given"))
	} else if err := r.test(ctx, &d); err != nil {
		return page, err
	}
	if err := r.weights(&d); err != nil {
		return page, err
	}
	d.draw(Network(r.Model))
	page.Card = r.card(d)
	page.Figures = d.drawn
	return page, nil
}

func (r Run) card(d draft) []plots.Part {
	run := []plots.Row{{Name: "written", Value: time.Now().UTC().Format("2006-01-02 15:04 MST")}}
	if r.History != nil {
		var last loop.Elapsed
		for elapsed := range r.History.Rows() {
			last = elapsed
		}
		if r.History.Len() > 0 {
			run = append(run, plots.Row{Name: "history", Value: fmt.Sprintf("%d steps, %d examples, %s", last.Steps,
				last.Samples, last.Time.Round(time.Millisecond))})
		}
		if last.Date > 0 {
			run = append(run, plots.Row{Name: "history ends", Value: last.Date.Time().Format("2006-01-02 15:04 MST")})
		}
	}
	trained := r.Model.Describe().Card.Epochs > 0
	variables := r.Model.Summary()
	run = append(run, plots.Row{Name: "parameters", Value: fmt.Sprint(variables.Total(managed.Parameter).Size)})
	if fixed := variables.Total(managed.Fixed).Size; fixed > 0 {
		run = append(run, plots.Row{Name: "not trainable", Value: counted(fixed, "number")})
	}
	var sets, settings, versions []plots.Row
	state := r.Model.State().(configured)
	for _, s := range state.Settings() {
		if s.Value == "" {
			continue
		}
		trained = trained || s.Name == "batch"
		row := plots.Row{Name: s.Name, Value: s.Value}
		switch s.Name {
		case "data", "order", "batch":
			sets = append(sets, plots.Row{Name: map[string]string{"data": "trained on", "order": "order",
				"batch": "batch"}[s.Name], Value: s.Value})
		default:
			settings = append(settings, row)
		}
	}
	if !trained {
		run = append(run, plots.Row{Name: "training", Value: "the training of this model is unknown: it has had no Fit, and no step in this program"})
	}
	if r.Test != nil {
		var fields []string
		for _, f := range r.Test.Fields() {
			fields = append(fields, fmt.Sprintf("%s %s%v", f.Name, f.Array.DType(), f.Array.Dims))
		}
		sets = append(sets, plots.Row{Name: "tested on", Value: fmt.Sprintf("%d examples: %s", r.Test.Len(),
			strings.Join(fields, ", "))})
	}
	for _, name := range []string{"go", "lazo", "gomlx"} {
		versions = append(versions, plots.Row{Name: name, Value: builtWith()[name]})
	}
	of := state.Versions()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		versions = append(versions, plots.Row{Name: name, Value: of[name]})
	}
	card := []plots.Part{{Title: "Run", Rows: run}, {Title: "Figures of the test set", Rows: d.figures}, {Title: "Data",
		Rows: sets},
		{Title: "Settings", Rows: settings}, {Title: "Versions", Rows: versions}, {Title: "Not drawn", Rows: d.notDrawn}}
	return slices.DeleteFunc(card, func(p plots.Part) bool { return len(p.Rows) == 0 })
}

type configured interface {
	Settings() []checkpoint.Setting
	Versions() map[string]string
}

func shown(s shapes.Shape) string { return fmt.Sprint(s.DType, " ", s.Dimensions) }

func builtWith() map[string]string {
	of := map[string]string{"go": runtime.Version(), "lazo": "unknown", "gomlx": "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			for name, path := range map[string]string{"lazo": "github.com/lazo-ml/lazo", "gomlx": "github.com/gomlx/gomlx"} {
				if m.Path == path {
					of[name] = m.Version
				}
			}
		}
	}
	return of
}

const mostVariables = 60

func (r Run) weights(d *draft) error {
	var names []string
	rows := slices.DeleteFunc(r.Model.Summary().Rows,
		func(v managed.Row) bool { return v.Kind != managed.Parameter || v.Size == 0 })
	if len(rows) > mostVariables {
		d.leaveOut("Weights", fmt.Errorf("%d of the %d variables are drawn, those of the most numbers", mostVariables,
			len(rows)))
		slices.SortStableFunc(rows, func(a, b managed.Row) int { return int(b.Size - a.Size) })
		rows = rows[:mostVariables]
	}
	for _, v := range rows {
		names = append(names, v.Layer+"/"+v.Name)
	}
	if len(names) == 0 {
		d.leaveOut("Weights", errors.New("the model has no variables before its first batch"))
		return nil
	}
	var all []plots.Weights
	for _, name := range names {
		v, err := r.Model.Value(name)
		if err != nil {
			return err
		}
		w := plots.Weights{Name: strings.TrimPrefix(name, "/model/")}
		err = v.ConstFlatData(func(flat any) {
			for _, n := range numbers(flat) {
				w.Values = append(w.Values, float32(n))
			}
		})
		if err != nil {
			return err
		}
		if len(w.Values) == 0 {
			d.leaveOut("Weights "+w.Name, fmt.Errorf("its %s are not real numbers", v.Shape().DType))
			continue
		}
		all = append(all, w)
	}
	d.draw(plots.Histograms(all...))
	return nil
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Network returns the diagram of a model's inputs, layers and outputs with shapes and sizes. Inner layers are parts of
// their block. A model that is not built ([flaxlike.Model.Init]) is an error in the figure.
func Network(model *flaxlike.Model) *plots.Figure {
	s := model.Summary()
	var blocks []plots.Block
	at := make([]int, len(s.Layers))
	inputs := map[string]int{}
	for _, a := range s.Arrows {
		if _, known := inputs[a.Input]; a.From < 0 && !known {
			inputs[a.Input] = len(blocks)
			blocks = append(blocks, plots.Block{Name: a.Input, Kind: "input", Shape: shown(s.Inputs[a.Input])})
		}
	}
	var open []string
	for i, l := range s.Layers {
		for len(open) > 0 && !strings.HasPrefix(l.Name, open[len(open)-1]+"/") {
			open = open[:len(open)-1]
		}
		b := plots.Block{Name: l.Name, Kind: l.Kind, Size: l.Size - l.Fixed, Fixed: l.Fixed}
		if l.Kind != "variables" {
			b.Shape = shown(l.Output)
		}
		into := &blocks
		for range open {
			last := &(*into)[len(*into)-1]
			into = &last.Parts
		}
		*into = append(*into, b)
		at[i] = len(blocks) - 1
		if len(open) > 0 {
			at[i] = -1 - at[i]
		} else if l.Kind == "output" {
			continue
		}
		if l.Name != "" && l.Kind != "variables" {
			open = append(open, l.Name)
		}
	}
	for _, a := range s.Arrows {
		to := at[a.To]
		if to < 0 {
			continue // the enclosing layer has the arrow
		}
		from := inputs[a.Input]
		if a.From >= 0 {
			if from = at[a.From]; from < 0 {
				from = -1 - from
			}
		}
		if from != to && !slices.Contains(blocks[to].From, from) {
			blocks[to].From = append(blocks[to].From, from)
		}
	}
	return plots.Network(blocks...)
}
