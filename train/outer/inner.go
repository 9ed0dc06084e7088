package outer

import (
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// InnerLoops is a number of inner loops. For an interval of steps take a [loop.Watch] or a [loop.Task] on
// loop.Every(loop.Steps(n)).
type InnerLoops int64

// due tells whether the inner loop, or the evaluation, of a number is an n-th one.
func (n InnerLoops) due(number int64) bool { return number%int64(max(n, 1)) == 0 }

// Inner is an inner loop that has ended, or an evaluation. The zero Inner had no steps.
type Inner struct {
	// Number counts inner loops from 1, those of earlier runs too. An evaluation has the number of the inner loop
	// before it.
	Number int64
	// Steps is the number of its steps.
	Steps int64
	// Elapsed is how far the training was at the end of it.
	Elapsed loop.Elapsed
	history func() *loop.History
	outputs func() loop.Logs
}

// History is what its steps logged, as far as the history of the run kept it (see [loop.Keep] and [loop.Limit]). It
// reads that history: give a function of the [Group] the numbers that it needs, not the history or the outputs.
func (i Inner) History() *loop.History {
	if i.history == nil {
		return &loop.History{}
	}
	return i.history()
}

// Outputs are its aggregated entries, and in the collection [Stats] the numbers of the loop itself. A value is read
// when it is asked for.
func (i Inner) Outputs() loop.Logs {
	if i.outputs == nil {
		return loop.Logs{}
	}
	return i.outputs()
}

// Stats is the collection of the numbers of an inner loop, or an evaluation, in its [Inner.Outputs]:
//
//	steps_per_sec     without the begin and end actions and the evaluations
//	examples_per_sec  likewise, see [loop.Sized]
//	loop_time_secs    the time of these steps
//	init_time_secs    the time from the start of the run until the first batch was there: opening the data
//	life_time_secs    the time since the start of the run
//	loop_count        the number of the inner loop
//
// An evaluation has the first three. A device that runs behind the loop is not waited for.
const Stats loop.Collection = "stats"

// rates are the first three of the [Stats].
func rates(made loop.Elapsed, took time.Duration) (logs loop.Logs) {
	seconds := max(took, 1).Seconds() // a clock may be too coarse for a short loop
	logs.Set(Stats, "steps_per_sec", loop.Number(float64(made.Steps)/seconds))
	logs.Set(Stats, "examples_per_sec", loop.Number(float64(made.Samples)/seconds))
	logs.Set(Stats, "loop_time_secs", loop.Number(took.Seconds()))
	return logs
}

// outputs aggregates a history that may be asked for later.
func outputs(history func() *loop.History, as loop.Aggregations, stats loop.Logs) func() loop.Logs {
	return func() loop.Logs {
		logs := history().Aggregate(as)
		logs.Merge(stats)
		return logs
	}
}

// rows is the part of a history between two steps, without some entries.
func rows(all *loop.History, from, to int64, without map[string]bool) *loop.History {
	all = all.Since(from)
	part := &loop.History{}
	batches, err := all.Collect("elapsed.batch")
	if err != nil {
		return part // there is no row
	}
	row := 0
	for at, logs := range all.Rows() {
		batch := batches[0][row]
		row++
		if at.Steps <= from {
			continue
		}
		if at.Steps > to {
			break
		}
		var entries []loop.Entry
		for e := range logs.All() {
			if !without[e.Path()] {
				entries = append(entries, e)
			}
		}
		if len(entries) > 0 {
			part.Commit(at, loop.NewLogs(entries), int64(batch))
		}
	}
	return part
}
