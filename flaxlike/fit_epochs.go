package flaxlike

import (
	"fmt"
	"iter"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

var eachEpoch = loop.Every(loop.Epochs(1))

type runPlace struct {
	loop.Elapsed
	into  int64
	found bool
}

func placeAfter(elapsed loop.Elapsed, history *loop.History, epochSteps int64) runPlace {
	at := runPlace{elapsed, elapsed.Steps % epochSteps, true}
	ends, epochs, err := history.Series(epochEntry)
	if err != nil || len(ends) == 0 {
		at.Epochs = max(at.Epochs, at.Steps/epochSteps)
		return at
	}
	if at.Epochs == 0 {
		at.Epochs = int64(epochs[len(epochs)-1])
	}
	for i, epoch := range epochs {
		if int64(epoch) == at.Epochs {
			at.into = min(at.Steps-ends[i].Steps, epochSteps-1)
			break
		}
	}
	return at
}

// epochsOf marks each epoch's last batch, and reads an ended source again unless it is a plain iterator. With whole,
// a run continues within an epoch of the data.
func epochsOf(batches loop.Source[data.Batch], begin *runPlace, epochSteps int64, whole bool) loop.Source[data.Batch] {
	_, plain := batches.(loop.Data[data.Batch])
	ended := false
	return loop.From(func(position int64) iter.Seq2[data.Batch, error] {
		return func(yield func(data.Batch, error) bool) {
			into := position - begin.Steps + begin.into
			if whole {
				position = begin.Epochs*epochSteps + into
			}
			for more := !ended; more; {
				more = false
				part := batches.From(position)
				if part == nil {
					yield(data.Batch{}, fmt.Errorf("the source returned no iterator for position %d", position))
					return
				}
				for batch, err := range part {
					if err == nil {
						position++
						into++
						more = !plain
						batch = batch.WithEnd(into%epochSteps == 0)
					}
					if !yield(batch, err) {
						return
					}
				}
			}
			ended = true
		}
	})
}

func restoredHistory(h *loop.History, epochSteps int64, tests []evaluation) (*loop.History, error) {
	if h.Len() == 0 {
		return h, nil
	}
	samples, err := h.Collect("elapsed.batch")
	if err != nil {
		return nil, err
	}
	_, none := h.Last(epochEntry)
	now, row := new(loop.History), 0
	var epochs int64
	for elapsed, logs := range h.Rows() {
		if none != nil {
			if logs = renamed(logs, tests); elapsed.Steps%epochSteps == 0 {
				logs.Set(progress, epochEntry, elapsed.Steps/epochSteps)
			}
		}
		if n, err := logs.Float(epochPath); err == nil {
			epochs = int64(n)
		}
		elapsed.Epochs = epochs
		now.Commit(elapsed, logs, int64(samples[0][row]))
		row++
	}
	return now, nil
}

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
