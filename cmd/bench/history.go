package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/metrics/plots"
)

// record compares a workload's times with those of an earlier commit, measured in turns: a line of the history.
type record struct {
	Date      time.Time `json:"date"` // the run's start
	Commit    string    `json:"commit"`
	Reference string    `json:"reference"`
	Processor string    `json:"processor"`
	Load      float64   `json:"load"`
	Workload  string    `json:"workload"`
	Variant   string    `json:"variant"`
	Unit      string    `json:"unit"`
	Before    float64   `json:"before"` // medians
	Now       float64   `json:"now"`
	comparison
}

func (r record) row() string {
	word := ""
	if r.slower() {
		word = "**slower**"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %.4g | %.4g | %.2f | %.3f | %s |", r.Workload, r.Variant, r.Unit, r.Before, r.Now, r.Ratio, r.Chance, word)
}

// readHistory also reports a file that cannot be written, before anything is measured.
func readHistory(path string) (records []record, err error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	for l := range strings.Lines(string(text)) {
		var r record
		err := json.Unmarshal([]byte(l), &r)
		if err == nil && (r.Date.IsZero() || r.Reference == "" || r.Workload == "" || r.Ratio <= 0 || !strings.HasSuffix(l, "\n")) {
			err = errors.New("expected a whole line with date, reference, workload and a ratio above 0")
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(records)+1, err)
		}
		records = append(records, r)
	}
	return records, nil
}

func keepHistory(b *bench, earlier, records []record) error {
	if b.history != "" {
		var lines bytes.Buffer
		for _, r := range records {
			if err := json.NewEncoder(&lines).Encode(r); err != nil {
				return fmt.Errorf("%s %s: %w", r.Workload, r.Variant, err)
			}
		}
		f, err := os.OpenFile(b.history, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(lines.Bytes())
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if b.plot == "" {
		return nil
	}
	return drawHistory(append(earlier, records...)).Save(b.plot)
}

// drawHistory draws the runs with the newest one's reference, for ratios to several ones are not comparable.
func drawHistory(records []record) *plots.Figure {
	newest := records[len(records)-1]
	const ofReference = "time / the reference's"
	var names []string
	rows := make([]loop.Logs, 1) // the reference itself
	for i, r := range records {
		if r.Reference != newest.Reference {
			continue
		}
		if len(rows) == 1 || !r.Date.Equal(records[i-1].Date) {
			rows = append(rows, loop.Logs{})
		}
		name := r.Workload + " " + r.Variant
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		rows[0].Set(ofReference, name, 1)
		rows[len(rows)-1].Set(ofReference, name, r.Ratio)
	}
	var h loop.History
	for i, logs := range rows {
		h.Commit(loop.Elapsed{Steps: int64(i)}, logs, 1)
	}
	return plots.History(&h, names...).Titled("make bench-check").Caption(fmt.Sprintf("Step 0 is the reference %s, step %d %s on %s.",
		newest.Reference, len(rows)-1, newest.Commit, newest.Date.Format(time.DateOnly)))
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(text), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	return cmp.Or(model, runtime.GOARCH)
}
