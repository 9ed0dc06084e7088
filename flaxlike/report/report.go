package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/metrics/plots"
)

// Run has a report's subjects. Only Model is required.
type Run struct {
	// Title is by default "Report".
	Title string
	Model *flaxlike.Model
	// History is the result of Fit.
	History *loop.History
	// Test has examples that the model was not trained on, for figures, drawings and the worst examples. It may be the
	// table before the model's preparation (flaxlike.WithPreparation).
	Test *data.Set
	// Output is the output to report, and Label its labels' field, by default the only output, and Output or "y".
	Output, Label string
	// Classes are class names, by default the model's (flaxlike.WithClasses) or numbers. They are an error for a model
	// that is no classifier.
	Classes []string
	// Images is a field [examples, height, width, 1 or 3], by default "x" if it has that shape.
	Images string
}

// Save writes report.html, which needs no other file, into a folder, which it creates. The section "Not drawn" lists
// plots that this model or data does not allow.
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

func (r Run) test(ctx context.Context, d *draft) error {
	a, err := r.answers(ctx)
	if err != nil {
		return err
	}
	var c classified
	var n regressed
	switch a.kind {
	case "numbers":
		err = errors.New("the model is not a classifier: its loss is for numbers")
		if r.Classes == nil && r.Images == "" {
			if n, err = a.regress(); err == nil {
				n.describe(a)
			}
		}
	default:
		if c, err = r.classify(a); err == nil {
			c.describe(a)
		}
	}
	if err != nil && (r.Classes != nil || r.Images != "") {
		return err
	}
	var worst []loss
	worstErr := err
	if err == nil {
		worst, worstErr = a.worst(ctx)
	}
	// The model's card keeps the figures of the last evaluation.
	if err := a.evaluate(ctx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(a.figures)) {
		value := fmt.Sprintf("%.6g", a.figures[name])
		if ranks(a.about.Metrics, name) {
			value += " (of 200 thresholds; a curve has all)"
		}
		d.figures = append(d.figures, plots.Row{Name: name, Value: value})
	}
	if err != nil {
		d.leaveOut("Results", err)
		return nil
	}
	if a.kind == "numbers" {
		a.drawNumbers(n, d)
	} else {
		r.drawClasses(a, c, d)
	}
	if err := r.drawExamples(ctx, a, c, worst, worstErr, d); err != nil {
		return err
	}
	if err := a.drawImportance(ctx, d); err != nil {
		d.leaveOut("Importance", err)
	}
	return nil
}

func (r Run) drawExamples(ctx context.Context, a *answers, c classified, worst []loss, err error, d *draft) error {
	if err != nil {
		d.leaveOut("Worst examples", err)
		return nil
	}
	if a.kind != "numbers" {
		images, how, err := r.samples(a, c, worst)
		if err != nil && r.Images != "" {
			return err
		}
		if err == nil {
			d.draw(plots.Samples(images...).Caption(how))
			if err := a.drawSaliency(ctx, r.images(), images, worst, d); err != nil {
				d.leaveOut("Saliency", err)
			}
			return nil
		}
	}
	if err := a.drawWorst(worst, d); err != nil {
		return err
	}
	if err := a.drawWords(ctx, worst, d); err != nil {
		d.leaveOut("Words", err)
	}
	return nil
}

func ranks(metrics []string, figure string) bool {
	return slices.ContainsFunc(metrics, func(line string) bool {
		line, _ = strings.CutSuffix(line, ", weighted")
		name, output, several := strings.Cut(line, " of ")
		if name != "auc" && name != "average_precision" {
			return false
		}
		return figure == name && !several || figure == output+"_"+name
	})
}
