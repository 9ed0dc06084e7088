package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/metrics/plots"
)

// classified has the places of all examples, one after another: several of each if the output is of sequences.
type classified struct {
	names  []string
	kind   string
	width  int // numbers of a place
	places int // of an example
	// labels is of each place, or of multi-label of each number. counts is of each label.
	labels        []int32
	counts        []bool
	probabilities []float64
	// before is by the network's outputs alone, as Evaluate counts; after by calibration and thresholds.
	before, after []int32
}

func (r Run) classify(a *answers) (c classified, err error) {
	if a.label.Flat == nil {
		return c, errors.New("the test set has no labels")
	}
	probabilities, err := a.p.Probabilities(a.output)
	if err != nil {
		return c, err
	}
	own, err := a.p.ClassNames(a.output)
	if err != nil {
		return c, err
	}
	c.kind = a.kind
	if c.names = slices.Clone(r.Classes); r.Classes == nil {
		c.names = own
	}
	for k, name := range c.names {
		if slices.Contains(c.names[:k], name) {
			return c, fmt.Errorf("the class %q is named twice", name)
		}
	}
	if len(c.names) != len(own) {
		return c, fmt.Errorf("%d names for %d classes", len(c.names), len(own))
	}
	c.probabilities, c.width = numbers(probabilities.Flat), len(own)
	if c.kind == "binary" {
		c.width = 1
	}
	c.places = len(c.probabilities) / c.width / a.p.Len()
	if err := c.readLabels(a, probabilities.Dims); err != nil {
		return c, err
	}
	after, err := a.p.Classes(a.output)
	if err != nil {
		return c, err
	}
	c.after = after.Flat.([]int32)
	c.before, err = a.uncorrected(c.after)
	return c, err
}

// uncorrected has the classes without calibration and thresholds.
func (a *answers) uncorrected(after []int32) ([]int32, error) {
	if a.kind == "classes" {
		return after, nil // a temperature keeps the order
	}
	if len(a.about.Calibrations[a.output]) == 0 {
		classes, err := a.p.WithThresholds(0.5).Classes(a.output)
		if err != nil {
			return nil, err
		}
		return classes.Flat.([]int32), nil
	}
	logits, err := a.p.Output(a.output)
	if err != nil {
		return nil, err
	}
	before := make([]int32, 0, len(after))
	for _, v := range numbers(logits.Flat) {
		class := int32(0)
		if v > 0 {
			class = 1
		}
		before = append(before, class)
	}
	return before, nil
}

func (c *classified) readLabels(a *answers, output []int) (err error) {
	given, n, classes := a.label.Flat.([]float64), a.p.Len()*c.places, len(c.names)
	hot := c.kind == "classes" && len(given) == n*classes
	switch {
	case c.kind == "multi-label" && len(given) != n*classes:
		return fmt.Errorf("labels %v are not 0 or 1 for each of %d classes", a.label.Dims, classes)
	case c.kind == "multi-label" || hot:
	case len(given) != n:
		return fmt.Errorf("labels %v are not one class of %d for each example, or place of the output %v", a.label.Dims, classes, output)
	}
	if !hot {
		if c.counts, err = a.counting(given); err != nil {
			return err
		}
		highest := classes
		if c.kind == "multi-label" {
			highest = 2
		}
		for i, v := range given {
			if c.counts[i] && (v != math.Trunc(v) || v < 0 || v >= float64(highest)) {
				return fmt.Errorf("the label %v of example %d is not one of %d classes", v, i*a.p.Len()/len(given), highest)
			}
			c.labels = append(c.labels, int32(v))
		}
		return nil
	}
	var places []float64
	for row := range slices.Chunk(given, classes) {
		ones, at := 0, 0
		for k, v := range row {
			switch v {
			case 1:
				ones++
				at = k
			case 0:
			default:
				ones = -1 << 30
			}
		}
		if ones != 1 {
			return fmt.Errorf("the labels of example %d are %v, expected those of one class", len(places)/c.places, row)
		}
		places = append(places, float64(at))
		c.labels = append(c.labels, int32(at))
	}
	c.counts, err = a.counting(places)
	return err
}

func (c *classified) right(of []int32) (right, all int) {
	for i, label := range c.labels {
		if c.counts[i] {
			if all++; of[i] == label {
				right++
			}
		}
	}
	return right, all
}

func (c *classified) describe(a *answers) {
	each := len(c.labels) / a.p.Len()
	list := func(of []int32, i int) string {
		of = of[i*each : (i+1)*each]
		var names []string
		switch {
		case c.kind == "multi-label":
			for k, v := range of[:c.width] {
				if v == 1 {
					names = append(names, c.names[k])
				}
			}
		default:
			for k, v := range of[:min(len(of), 8)] {
				if c.counts[i*each+k] {
					names = append(names, c.names[v])
				} else {
					names = append(names, "–")
				}
			}
		}
		if names == nil {
			return "none"
		}
		if c.places > 1 && (c.kind == "multi-label" || each > 8) {
			names = append(names, "…")
		}
		return strings.Join(names, ", ")
	}
	a.truth = func(i int) string { return list(c.labels, i) }
	a.answer = func(i int) string {
		if text := list(c.after, i); c.kind == "multi-label" || c.places > 1 {
			return text
		} else {
			return fmt.Sprintf("%s (%.1f%%)", text, 100*c.of(i, c.after[i]))
		}
	}
	a.errorName = "the least probable labels"
	a.errors = make([]float64, a.p.Len())
	counted := make([]bool, a.p.Len())
	for i, label := range c.labels {
		if !c.counts[i] {
			continue
		}
		p := 0.0
		switch {
		case c.kind != "multi-label":
			p = c.of(i, label)
		case label == 1:
			p = c.probabilities[i]
		default:
			p = 1 - c.probabilities[i]
		}
		a.errors[i/each] -= math.Log(max(p, 1e-300))
		counted[i/each] = true
	}
	for i, is := range counted {
		if !is {
			a.errors[i] = math.Inf(-1)
		}
	}
	if c.kind != "multi-label" && c.places == 1 {
		a.numberName = "probability"
		a.number = func(p flaxlike.Prediction, example int) ([]float64, error) {
			probabilities, err := p.Probabilities(a.output)
			if err != nil {
				return nil, err
			}
			hidden, all := classified{probabilities: numbers(probabilities.Flat), width: c.width}, make([]float64, p.Len())
			for k := range all {
				all[k] = hidden.of(k, c.after[example])
			}
			return all, nil
		}
	}
	a.scoreName = "accuracy"
	if c.kind == "multi-label" {
		a.scoreName = "share of examples with all classes right"
	}
	a.score = func(p flaxlike.Prediction, rows []int) (float64, error) {
		classes, err := p.Classes(a.output)
		if err != nil {
			return 0, err
		}
		of, right, all := classes.Flat.([]int32), 0, 0
		for k, i := range rows {
			whole := true
			for e := range each {
				is := of[k*each+e] == c.labels[i*each+e]
				whole = whole && is
				if c.kind != "multi-label" && c.counts[i*each+e] {
					if all++; is {
						right++
					}
				}
			}
			if c.kind == "multi-label" {
				if all++; whole {
					right++
				}
			}
		}
		return float64(right) / float64(all), nil
	}
	if of := a.named(a.about.Metrics); c.kind == "binary" && c.places == 1 {
		c.scoreCurve(a, of, "auc", "area under the ROC curve", plots.ROCCurve)
		c.scoreCurve(a, of, "average_precision", "average precision", plots.PrecisionRecallCurve)
	}
}

// scoreCurve replaces the accuracy, which few positives hardly change, if the model has the metric.
func (c *classified) scoreCurve(a *answers, metrics map[string]string, metric, name string, curve func(positive []bool, scores []float64) (plots.Curve, error)) {
	if _, has := metrics[metric]; !has {
		return
	}
	a.scoreName = name
	a.score = func(p flaxlike.Prediction, rows []int) (float64, error) {
		probabilities, err := p.Probabilities(a.output)
		if err != nil {
			return 0, err
		}
		var positive []bool
		var scores []float64
		for k, v := range numbers(probabilities.Flat) {
			if i := rows[k]; c.counts[i] {
				positive, scores = append(positive, c.labels[i] == 1), append(scores, v)
			}
		}
		drawn, err := curve(positive, scores)
		return drawn.Area, err
	}
}

func (c *classified) of(place int, class int32) float64 {
	switch {
	case c.width > 1:
		return c.probabilities[place*c.width+int(class)]
	case class == 1:
		return c.probabilities[place]
	}
	return 1 - c.probabilities[place]
}

func (r Run) drawClasses(a *answers, c classified, d *draft) {
	row := plots.Row{Name: "probabilities", Value: "of each class"}
	if c.kind == "binary" {
		row.Value = "of the class " + c.names[1]
	}
	if by := a.about.Calibrations[a.output]; len(by) > 0 {
		row.Value += fmt.Sprint(", calibrated: ", by)
	}
	d.figures = append(d.figures, row)
	thresholds := a.about.Thresholds[a.output]
	corrected := len(thresholds) > 0 || c.kind != "classes" && len(a.about.Calibrations[a.output]) > 0
	right, all := c.right(c.before)
	if all == 0 {
		d.leaveOut("Classes", errors.New("no label of the test set counts"))
		return
	}
	accuracies := []string{"accuracy", "acc", "sparse_categorical_accuracy", "categorical_accuracy"}
	if c.kind != "classes" {
		accuracies = []string{"accuracy", "acc", "binary_accuracy"}
	}
	known, err := a.agrees(float64(right)/float64(all), accuracies...)
	if err == nil {
		err = a.unconfirmed(known, c.places)
	}
	if err != nil {
		d.leaveOut("Classes", err)
		return
	}
	what := "right classes"
	if corrected {
		what = "right classes, threshold 0.5"
	}
	d.figures = append(d.figures, plots.Row{Name: what, Value: fmt.Sprintf("%.6g (%d of %d)", float64(right)/float64(all), right, all)})
	if corrected {
		right, all = c.right(c.after)
		d.figures = append(d.figures, plots.Row{Name: "right classes", Value: fmt.Sprintf("%.6g (%d of %d)", float64(right)/float64(all), right, all)})
	}
	if !corrected {
		d.draw(c.scores(c.after, nil))
		d.draw(c.confusion(c.after))
	} else {
		before, after := "The network's outputs with the threshold 0.5, as Evaluate counts.", "With the model's "+c.corrections(a)+", as Predict answers."
		d.draw(c.scores(c.before, nil).Caption(before))
		d.draw(c.scores(c.after, thresholds).Caption(after))
		d.draw(c.confusion(c.before).Caption(before))
		d.draw(c.confusion(c.after).Caption(after))
	}
	curves, caption := c.curves()
	d.draw(plots.ROC(curves).Caption(caption))
	d.draw(plots.PrecisionRecall(curves).Caption(caption))
	d.draw(plots.ReliabilityDiagram(curves).Caption(caption))
}

func (c *classified) corrections(a *answers) string {
	var parts []string
	if len(a.about.Calibrations[a.output]) > 0 {
		parts = append(parts, "calibration")
	}
	switch of := a.about.Thresholds[a.output]; {
	case len(of) == 1:
		parts = append(parts, fmt.Sprintf("threshold %.4g", of[0]))
	case len(of) > 1:
		parts = append(parts, "thresholds")
	}
	return strings.Join(parts, " and ")
}

const mostCurveNumbers = 20_000_000

// curves has at most 20 million numbers.
func (c *classified) curves() (plots.Classified, string) {
	of, caption := plots.Classified{Classes: c.names}, ""
	n := len(c.probabilities) / c.width
	k := min(n, max(1, mostCurveNumbers/len(c.names)))
	if k < n {
		caption = fmt.Sprintf("Of %d of the %d labels, evenly spaced.", k, n)
	}
	for j := range k {
		i := j * n / k
		if c.kind != "multi-label" && !c.counts[i] {
			continue
		}
		scores := c.probabilities[i*c.width : (i+1)*c.width]
		switch c.kind {
		case "binary":
			scores = []float64{1 - scores[0], scores[0]}
			fallthrough
		default:
			of.Labels = append(of.Labels, int(c.labels[i]))
		case "multi-label":
			row := make([]bool, c.width)
			for class := range row {
				row[class] = c.labels[i*c.width+class] == 1
			}
			of.Positive = append(of.Positive, row)
		}
		of.Scores = append(of.Scores, scores)
	}
	return of, caption
}
