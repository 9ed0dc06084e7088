package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics/plots"
)

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
	about := r.Model.Describe()
	trained := about.Card.Epochs > 0
	if trained {
		run = append(run, plots.Row{Name: "epochs", Value: fmt.Sprint(about.Card.Epochs)})
	}
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
		case "data", "order", "batch", "data.content":
			sets = append(sets, plots.Row{Name: map[string]string{"data": "trained on", "order": "order",
				"batch": "batch", "data.content": "training checksum"}[s.Name], Value: s.Value})
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
		if b, err := data.Peek(r.Test.Batches(1, data.Kept).All()); err == nil && b.Deal != nil {
			sets = append(sets, plots.Row{Name: "test checksum", Value: b.Deal.Content + " (checksum of a sample)"})
		}
	}
	settings = append(settings, moreSettings(about)...)
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

func moreSettings(about flaxlike.Description) (rows []plots.Row) {
	add := func(name string, value ...string) {
		if text := strings.Join(value, "; "); text != "" {
			rows = append(rows, plots.Row{Name: name, Value: text})
		}
	}
	add("metrics", about.Metrics...)
	for _, output := range slices.Sorted(maps.Keys(about.Classes)) {
		add(strings.TrimSuffix("classes of "+output, " of "), cut(strings.Join(about.Classes[output], ", ")))
	}
	for _, output := range slices.Sorted(maps.Keys(about.Calibrations)) {
		add("calibration of "+output, fmt.Sprint(about.Calibrations[output]))
	}
	for _, output := range slices.Sorted(maps.Keys(about.Thresholds)) {
		add("thresholds of "+output, fmt.Sprint(about.Thresholds[output]))
	}
	add("outdated", about.Outdated...)
	var table struct{ Columns []map[string]any }
	if json.Unmarshal(about.Preparation, &table) != nil { // there is none
		return rows
	}
	for i, c := range table.Columns {
		if i == mostVariables {
			add("preparation", fmt.Sprintf("%d more columns", len(table.Columns)-i))
			break
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(c)) {
			if name != "column" && name != "columns" {
				parts = append(parts, fmt.Sprintf("%s %v", name, c[name]))
			}
		}
		if several, ok := c["columns"]; ok {
			c["column"] = several
		}
		add(fmt.Sprint("column ", c["column"]), cut(strings.Join(parts, ", ")))
	}
	return rows
}

func cut(text string) string {
	const most = 600
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
}
