package flaxlike

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Card describes a model's training.
type Card struct {
	// Examples and Fields describe the last Fit's set; a field is "x float32[28 28]". Examples is 0 for batches.
	Examples int      `json:"examples,omitempty"`
	Fields   []string `json:"fields,omitempty"`
	// Epochs is the number of rows in the last or running Fit's history. Fit has the figures of the epoch whose weights
	// the model has, Evaluated those of the last Evaluate, until the weights change.
	Epochs    int                `json:"epochs,omitempty"`
	Fit       map[string]float64 `json:"fit,omitempty"`
	Evaluated map[string]float64 `json:"evaluated,omitempty"`
	// Untrained means that the weights are the initializers' random draws.
	Untrained     bool              `json:"untrained,omitempty"`
	ClassWeights  map[int]float64   `json:"class_weights,omitempty"`
	SampleWeights string            `json:"sample_weights,omitempty"`
	Versions      map[string]string `json:"versions,omitempty"`
	Saved         *time.Time        `json:"saved,omitempty"`
}

type figures struct {
	at    int64
	found map[string]float64
	row   loop.Logs
}

func (f figures) of(now int64) map[string]float64 {
	switch {
	case f.at != now:
		return nil
	case f.row.Len() > 0:
		return maps.Collect(figuresOf(f.row))
	}
	return maps.Clone(f.found)
}

func figuresOf(logs loop.Logs) func(yield func(string, float64) bool) {
	return func(yield func(string, float64) bool) {
		for e := range logs.All() {
			if !e.IsNumber() {
				continue
			}
			if v, err := e.Value.Float(); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && !yield(e.Name, v) {
				return
			}
		}
	}
}

const progress loop.Collection = "progress"

const (
	epochEntry = "epoch"
	epochPath  = string(progress) + "." + epochEntry
	rateEntry  = "learning_rate"
)

func meansOf(entries []loop.Entry, parts map[string]float64) (shown []int, losses []part) {
	places := map[string]int{}
	for i, e := range entries {
		places[e.Path()] = i
	}
	for i, e := range entries {
		single := func(c loop.Collection) bool {
			_, ok := places[loop.Entry{Collection: c, Name: strings.TrimPrefix(e.Name, averaged)}.Path()]
			return ok
		}
		mean, ok := places[loop.Entry{Collection: loop.Stateful, Name: averaged + e.Name}.Path()]
		switch {
		case ok && e.Collection == loop.Losses && e.Name == trained && len(parts) > 0:
			for _, name := range slices.Sorted(maps.Keys(parts)) {
				if mean, ok := places[loop.Entry{Collection: loop.Stateful, Name: averaged + name}.Path()]; ok {
					losses = append(losses, part{mean, parts[name]})
				}
			}
			shown = append(shown, mean)
		case ok && e.Collection == loop.Losses:
			losses = append(losses, part{mean, 1})
			fallthrough
		case ok && e.Collection == loop.Metrics:
			shown = append(shown, mean)
		case e.Collection == loop.Stateful && strings.HasPrefix(e.Name, averaged) && (single(loop.Losses) || single(loop.Metrics)):
			shown = append(shown, -1)
		default:
			shown = append(shown, i)
		}
	}
	return shown, losses
}

func asShown(steps []loop.Logs, parts map[string]float64) []loop.Logs {
	if len(steps) == 0 {
		return steps
	}
	entries := make([]loop.Entry, 0, steps[0].Len())
	entries = appendTo(entries, steps[0])
	shown, losses := meansOf(entries, parts)
	all := make([]loop.Entry, 0, len(steps)*(len(entries)+1))
	for i, logs := range steps {
		entries = appendTo(entries[:0], logs)
		from := len(all)
		if len(losses) > 0 {
			all = append(all, loop.Entry{Collection: loop.Losses, Name: trained, Value: sumOfLosses(entries, losses)})
		}
		for k, e := range entries {
			if shown[k] >= 0 && !(e.Collection == loop.Losses && e.Name == trained) {
				all = append(all, loop.Entry{Collection: e.Collection, Name: e.Name, Value: entries[shown[k]].Value})
			}
		}
		steps[i] = loop.Logs{}
		steps[i].SetAll(all[from:len(all):len(all)])
	}
	return steps
}

func appendTo(entries []loop.Entry, logs loop.Logs) []loop.Entry {
	for e := range logs.All() {
		entries = append(entries, e)
	}
	return entries
}

type part struct {
	at     int
	weight float64
}

func sumOfLosses(entries []loop.Entry, losses []part) loop.Value {
	if len(losses) == 1 && losses[0].weight == 1 {
		return entries[losses[0].at].Value
	}
	var sum total
	for _, l := range losses {
		sum.values, sum.weights = append(sum.values, entries[l.at].Value), append(sum.weights, l.weight)
	}
	return sum
}

type total struct {
	values  []loop.Value
	weights []float64
}

func (t total) Float() (sum float64, err error) {
	for i, value := range t.values {
		v, err := value.Float()
		if err != nil {
			return 0, err
		}
		sum += t.weights[i] * v
	}
	return sum, nil
}

func shownOf(paths []string) []loop.Entry {
	logs := make([]loop.Entry, len(paths))
	for i, path := range paths {
		collection, name, _ := strings.Cut(path, ".")
		logs[i] = loop.Entry{Collection: loop.Collection(collection), Name: name}
	}
	steps := make([]loop.Logs, 1)
	steps[0].SetAll(logs)
	return appendTo(nil, asShown(steps, nil)[0])
}
