package flaxlike

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/loop"
)

const (
	// The prefix of running means in the logs of a step.
	averaged = "avg_"
	// The sum of all losses, including penalties.
	trained = "loss"
)

// meansOf returns for each entry the index of its running mean, or -1 for a running mean itself; and the means of all
// trained losses. parts has the weights of several losses.
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

type part struct {
	at     int
	weight float64
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

func (s *settings) parts() map[string]float64 {
	if len(s.losses) < 2 {
		return nil
	}
	parts := map[string]float64{}
	for _, l := range s.losses {
		if !l.Off {
			parts[l.logged(false)] = cmp.Or(l.Weight, 1)
		}
	}
	return parts
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

// renamed renames entries that an older lazo saved.
func renamed(logs loop.Logs, tests []evaluation) (all loop.Logs) {
	entries := appendTo(nil, logs)
	shown, _ := meansOf(entries, nil)
	for i, e := range entries {
		if shown[i] < 0 {
			continue
		}
		for _, t := range tests {
			if name, is := strings.CutSuffix(e.Name, "_"+t.Name); is {
				e.Name = t.Name + "_" + name
			}
		}
		all.Set(e.Collection, e.Name, entries[shown[i]].Value)
	}
	return all
}

const progress loop.Collection = "progress"

const (
	epochEntry = "epoch"
	epochPath  = string(progress) + "." + epochEntry
	rateEntry  = "learning_rate"
)
