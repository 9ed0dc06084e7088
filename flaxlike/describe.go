package flaxlike

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/managed"
)

// Description describes a model, or its file.
type Description struct {
	// Network has a line for each layer: place, kind and settings, indented inside other layers, with "(own)" after
	// custom ones. Code is the reason for none.
	Network []string `json:"network,omitempty"`
	Code    string   `json:"code,omitempty"`
	// Inputs are the network's fields, as in the last training batch that built it.
	Inputs  []Input             `json:"inputs,omitempty"`
	Losses  []string            `json:"losses,omitempty"`
	Metrics []string            `json:"metrics,omitempty"`
	Classes map[string][]string `json:"classes,omitempty"` // by output; the only one is ""
	// Calibrations and Thresholds in force are by output; the default threshold is 0.5. Outdated lists the others
	// ([ErrOutdated]): "calibration of preds".
	Calibrations map[string][]decision.Calibration `json:"calibrations,omitempty"`
	Thresholds   map[string][]float64              `json:"thresholds,omitempty"`
	Outdated     []string                          `json:"outdated,omitempty"`
	// Optimizer is its name and learning rate, Policy the dtypes if not all float32.
	Optimizer   string          `json:"optimizer,omitempty"`
	BatchSize   int             `json:"batch_size,omitempty"`
	Policy      string          `json:"policy,omitempty"`
	Preparation json.RawMessage `json:"preparation,omitempty"`
	// Numbers counts the elements of Variables.
	Variables []string `json:"variables"`
	Numbers   int      `json:"numbers"`
	Card      Card     `json:"card"`
}

// Describe describes the model. Before its first batch it has no variables.
func (m *Model) Describe() Description {
	say := m.header(m.seen.changes.Load()).say()
	for _, row := range m.state.Summary().Rows {
		if row.Kind == managed.Parameter || row.Kind == managed.Fixed {
			say.variable(strings.TrimSuffix(row.Layer, "/")+"/"+row.Name, row.Shape.DType.String(), row.Shape.Dimensions, int(row.Size))
		}
	}
	return say
}

func (d *Description) variable(name, kind string, dims []int, size int) {
	d.Variables, d.Numbers = append(d.Variables, fmt.Sprintf("%s %s%v", name, dtype.InFiles(kind), dims)), d.Numbers+size
}

// Describe reads the description in a file of [Model.Save], without a plugin or the program's code.
func Describe(path string) (Description, error) {
	d, err := describeFile(path)
	if err != nil {
		return Description{}, fmt.Errorf("flaxlike: describe %s: %w", path, graphs.Inner(err))
	}
	return d, nil
}

func describeFile(path string) (say Description, err error) {
	content, d, err := readModel(path)
	if err != nil {
		return say, err
	}
	if _, err := d.inputs(); err != nil {
		return say, err
	}
	say = d.say()
	for _, t := range content.Tensors {
		say.variable(t.Name, t.DType.String(), t.Dims, len(t.Data)*8/max(1, t.DType.Bits()))
	}
	return say, nil
}

func (d header) say() Description {
	say := Description{Code: d.Code, Inputs: inputsOf(d.Inputs), Classes: d.Classes, Preparation: d.Preparation, Card: d.Card, Calibrations: maps.Clone(d.Calibrations),
		Thresholds: maps.Clone(d.Thresholds),
		Losses:     sayJudges(d.Losses), Metrics: sayJudges(d.Metrics)}
	if d.Network != nil {
		say.Network = d.Network.lines(nil, "", "")
	}
	if d.InnerLosses {
		say.Losses = append(say.Losses, lossesInside)
	}
	if d.Policy != nil {
		say.Policy = d.Policy.String()
	}
	for _, name := range d.OldCalibrations {
		delete(say.Calibrations, name)
		say.Outdated = append(say.Outdated, "calibration of "+name)
	}
	for _, name := range d.OldThresholds {
		delete(say.Thresholds, name)
		say.Outdated = append(say.Outdated, "thresholds of "+name)
	}
	say.BatchSize, say.Card.ClassWeights, say.Card.SampleWeights = d.BatchSize, maps.Clone(d.ClassWeights), d.SampleWeights
	if say.Optimizer = d.Optimizer; d.Rate != 0 {
		say.Optimizer += fmt.Sprintf(", rate %g", decimal(d.Rate))
	}
	return say
}

func (d Description) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name string, values ...string) {
		for _, v := range values {
			fmt.Fprintf(table, "%s\t%s\n", name, v)
			name = ""
		}
	}
	one := func(name, value string) {
		if value != "" {
			row(name, value)
		}
	}
	row("network", d.Network...)
	one("network", d.Code)
	for i, in := range d.Inputs {
		row([]string{"inputs", ""}[min(i, 1)], fmt.Sprintf("%s %s%v", in.Name, in.Type, in.Dims))
	}
	for _, output := range slices.Sorted(maps.Keys(d.Classes)) {
		row("classes", strings.TrimPrefix(output+": ", ": ")+strings.Join(d.Classes[output], ", "))
	}
	for _, output := range slices.Sorted(maps.Keys(d.Calibrations)) {
		row("calibration", fmt.Sprintf("%s: %v", output, d.Calibrations[output]))
	}
	for _, output := range slices.Sorted(maps.Keys(d.Thresholds)) {
		row("thresholds", fmt.Sprintf("%s: %.6g", output, d.Thresholds[output]))
	}
	row("outdated", d.Outdated...)
	if d.Preparation != nil {
		p, text := new(tables.Preparation), fmt.Sprintf("%d bytes of JSON, which this version of lazo cannot read", len(d.Preparation))
		if json.Unmarshal(d.Preparation, p) == nil {
			inputs, labels := p.Columns()
			text = "of the columns " + listed.Joined(inputs)
			if len(labels) > 0 {
				text += "; labels " + listed.Joined(labels)
			}
		}
		row("preparation", text)
	}
	row("losses", d.Losses...)
	row("metrics", d.Metrics...)
	c, weights := d.Card, []string(nil)
	for _, class := range slices.Sorted(maps.Keys(c.ClassWeights)) {
		weights = append(weights, fmt.Sprintf("%d: %g", class, c.ClassWeights[class]))
	}
	one("class weights", strings.Join(weights, ", "))
	one("sample weights", c.SampleWeights)
	one("optimizer", d.Optimizer)
	if d.BatchSize > 0 {
		row("batch size", fmt.Sprint(d.BatchSize))
	}
	one("policy", d.Policy)
	row("variables", append(slices.Clone(d.Variables), fmt.Sprintf("%d numbers", d.Numbers))...)
	if c.Untrained {
		row("trained on", "nothing: the weights are random draws of the initializers")
	}
	if c.Examples > 0 {
		row("trained on", append([]string{fmt.Sprintf("%d examples", c.Examples)}, c.Fields...)...)
	}
	if len(c.Fit) > 0 {
		to, figures := fmt.Sprintf("epoch %d", c.Epochs), maps.Clone(c.Fit)
		if of, logged := figures["epoch"]; logged && of != float64(c.Epochs) { // as of callbacks.KeepBest
			to = fmt.Sprintf("epoch %g, in a Fit of %d epochs", of, c.Epochs)
		}
		delete(figures, "epoch")
		row("trained to", append([]string{to}, sayFigures(figures)...)...)
	}
	row("evaluated", sayFigures(c.Evaluated)...)
	for i, name := range slices.Sorted(maps.Keys(c.Versions)) {
		row([]string{"saved by", ""}[min(i, 1)], name+" "+c.Versions[name])
	}
	if c.Saved != nil {
		row("saved", c.Saved.Format(time.RFC3339))
	}
	_ = table.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

func sayFigures(of map[string]float64) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		lines = append(lines, fmt.Sprintf("%s %.6g", name, of[name]))
	}
	return lines
}
