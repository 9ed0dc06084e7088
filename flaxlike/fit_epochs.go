package flaxlike

import (
	"fmt"
	"iter"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// eachEpoch is due at the end of each epoch of a run.
var eachEpoch = loop.Every(loop.Epochs(1))

// place is where a run begins.
type place struct {
	loop.Elapsed
	// into is the number of steps of its epoch that the earlier run has made.
	into int64
	// found: a checkpoint says it.
	found bool
}

// placeAfter is where a run continues after an earlier one, whose history has the numbers of its epochs.
func placeAfter(elapsed loop.Elapsed, history *loop.History, epochSteps int64) place {
	at := place{elapsed, elapsed.Steps % epochSteps, true}
	ends, epochs, err := history.Series(epochEntry)
	if err != nil || len(ends) == 0 { // no epoch has ended, or the rows were not kept
		at.Epochs = max(at.Epochs, at.Steps/epochSteps)
		return at
	}
	if at.Epochs == 0 { // a checkpoint of an older lazo does not count epochs
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

// epochsOf are the batches of a run. Each knows whether it is the last one of an epoch of the run, which has a number
// of steps. The data is asked for again when it ends, until it has no more batches; a plain iterator is not.
//
// A run continues at its position in the data, even if an epoch has another number of steps now. Only if whole is
// true, an epoch of the run is one of the data: the run then continues at the same place of that epoch.
func epochsOf(batches loop.Source[data.Batch], begin *place, epochSteps int64, whole bool) loop.Source[data.Batch] {
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

// restored is the history of a run that was saved: its rows know how many epochs had elapsed. Where validation's
// figures end in its name, and means begin with avg_, as an older lazo saved them, they get the names of today.
// Callbacks that follow val_loss then go on where they were.
func restored(h *loop.History, epochSteps int64, tests []evaluation) (*loop.History, error) {
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
