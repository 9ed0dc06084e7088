package train

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Inner is an inner loop that has ended, or an evaluation. The zero Inner had no steps.
type Inner struct {
	// Number is that of the inner loop, from 1, earlier runs included; for an evaluation that of the inner loop before it.
	Number int64
	// Steps is how many steps it made.
	Steps int64
	// Elapsed is how far the training was at its end.
	Elapsed loop.Elapsed
	history func() *loop.History
	outputs func() loop.Logs
}

// History is what its steps logged, as far as the history of the run kept it (see [loop.Keep] and [loop.Limit]). It belongs
// to that history: work for the [Background] has to be given the numbers, not the history or the outputs.
func (i Inner) History() *loop.History {
	if i.history == nil {
		return &loop.History{}
	}
	return i.history()
}

// Outputs are its aggregated entries, and in the collection [Stats] the numbers of the loop itself. Nothing is read before
// one of their values is.
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
//	init_time_secs    the time from the start of the run until the first batch was there: restoring, opening the data
//	life_time_secs    the time since the start of the run
//	loop_count        the number of the inner loop
//
// An evaluation has the first three. A device that runs behind the loop is not waited for.
const Stats loop.Collection = "stats"

// setRates logs the first three of the [Stats].
func setRates(logs *loop.Logs, made loop.Elapsed, took time.Duration) {
	seconds := max(took, 1).Seconds() // a clock may be too coarse for a short loop
	logs.Set(Stats, "steps_per_sec", loop.Number(float64(made.Steps)/seconds))
	logs.Set(Stats, "examples_per_sec", loop.Number(float64(made.Samples)/seconds))
	logs.Set(Stats, "loop_time_secs", loop.Number(took.Seconds()))
}

// outputs aggregates a history that may be asked for later.
func outputs(history func() *loop.History, as loop.Aggregations, stats loop.Logs) func() loop.Logs {
	return func() loop.Logs {
		logs := history().Aggregate(as)
		logs.Merge(stats)
		return logs
	}
}

// outerRun is one run of an [Outer] loop: tasks and callbacks of one [loop.Loop].
type outerRun[S, B any] struct {
	Outer[S, B]
	evals evaluations
	from  loop.Elapsed
	start time.Time
	init  time.Duration
	// The present inner loop: the steps before it, and when it began to use time of its own.
	opened loop.Elapsed
	began  time.Time
	// ended tells that the turn is the end of an inner loop, present; stats are its. It becomes last when its tasks are done.
	ended         bool
	present, last Inner
	stats         loop.Logs
	// logged are the entries of evaluations, which are no outputs of inner loops.
	logged map[string]bool
}

// number is that of the inner loop with a step in it, from 1.
func (r *outerRun[S, B]) number(step int64) int64 {
	if r.LoopSteps == 0 {
		return 1
	}
	return (step-1)/int64(r.LoopSteps) + 1
}

// border is due at the end of every so many inner loops. At the end of the run it is due always, and whoever is asked
// looks whether an inner loop ends there.
func (r *outerRun[S, B]) border(every InnerLoops) loop.Schedule {
	every = max(every, 1)
	if r.LoopSteps == 0 || int64(every) > math.MaxInt64/int64(r.LoopSteps) {
		return loop.AtEnd
	}
	return loop.Every(r.LoopSteps * loop.Steps(every)).AndAtEnd()
}

// beginning is due in the first turn of every so many inner loops.
func (r *outerRun[S, B]) beginning(a Action[S]) loop.Schedule {
	return loop.When("begin of inner loop", func(before, after loop.Elapsed) bool {
		first := before.Steps == r.from.Steps || r.LoopSteps > 0 && before.Steps%int64(r.LoopSteps) == 0
		return first && a.dueAt(r.number(after.Steps))
	})
}

func (r *outerRun[S, B]) tasks() (tasks []loop.Task[S, B]) {
	type turn = loop.Turn[S, B]
	for _, a := range r.Begin {
		tasks = append(tasks, loop.OnTurn(r.beginning(a), func(ctx context.Context, t *turn) error {
			return r.begin(ctx, a, t)
		}).Named(a.label()))
	}
	tasks = append(tasks, loop.On(loop.EachStep, r.Train))
	tasks = append(tasks, r.Tasks...)
	tasks = append(tasks, loop.OnTurn(r.border(1), func(ctx context.Context, t *turn) error {
		r.end(t.Elapsed)
		if !r.ended {
			return nil
		}
		return r.reset(ctx, t)
	}).Named("end of inner loop"))
	for _, e := range r.Evals {
		if e.Reset == nil {
			e.Reset = r.Reset
		}
		tasks = append(tasks, loop.OnTurn(r.border(e.Interval), func(ctx context.Context, t *turn) error {
			return r.evaluate(ctx, e, t)
		}).Named(e.label()))
	}
	return tasks
}

func (r *outerRun[S, B]) begin(ctx context.Context, a Action[S], t *loop.Turn[S, B]) error {
	if err := r.evals.background.Err(); err != nil {
		return err
	}
	now := time.Now()
	elapsed := r.opened // the state does not have the step of this turn yet
	elapsed.Time, elapsed.Date = t.Elapsed.Time, t.Elapsed.Date
	err := a.Do(ctx, r.at(Inner{Number: r.number(t.Elapsed.Steps), Elapsed: elapsed}, t.State))
	r.began = r.began.Add(time.Since(now))
	return err
}

func (r *outerRun[S, B]) at(inner Inner, state S) Border[S] {
	return Border[S]{inner, state, maps.Clone(r.evals.results), &r.evals.background}
}

// end is the first thing at a border: it takes the time.
func (r *outerRun[S, B]) end(now loop.Elapsed) {
	made := now.Since(r.opened)
	if r.ended = made.Steps > 0; !r.ended {
		return // the end of the run, just behind the end of an inner loop
	}
	r.present = Inner{Number: r.number(now.Steps), Steps: made.Steps, Elapsed: now}
	r.stats = loop.Logs{}
	setRates(&r.stats, made, time.Since(r.began))
	r.stats.Set(Stats, "init_time_secs", loop.Number(r.init.Seconds()))
	r.stats.Set(Stats, "life_time_secs", loop.Number(time.Since(r.start).Seconds()))
	r.stats.Set(Stats, "loop_count", loop.Number(r.present.Number))
}

func (r *outerRun[S, B]) evaluate(ctx context.Context, e EvalSpec[S, B], t *loop.Turn[S, B]) error {
	if !r.ended || !e.dueAt(EvalContext{Step: t.Elapsed.Steps, Loop: r.present.Number}) {
		return nil
	}
	logs, err := e.run(ctx, &r.evals, t.State, Inner{Number: r.present.Number, Elapsed: t.Elapsed})
	for entry := range logs.All() {
		r.logged[entry.Path()] = true
	}
	t.Logs.Merge(logs)
	if err != nil && !isStop(err) {
		return err
	}
	if failed := r.reset(ctx, t); failed != nil {
		return failed
	}
	return err
}

// reset clears what the state has summed up.
func (r *outerRun[S, B]) reset(ctx context.Context, t *loop.Turn[S, B]) error {
	if r.Reset == nil {
		return nil
	}
	state, err := r.Reset(ctx, t.State)
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	t.State = state
	return nil
}

// callbacks are the options of the run, in the order in which they look; their ends come in the reverse order.
func (r *outerRun[S, B]) watchers() []loop.Option {
	options := append(closing(r.Begin), attend("inner loops", loop.AtStart, func(context.Context, loop.Report) error {
		r.began = time.Now()
		r.init = r.began.Sub(r.start)
		return nil
	}, nil), attend("inner loops", r.border(1), r.close, nil))
	for _, a := range r.End {
		options = append(options, attend(a.label(), r.border(a.Every), func(ctx context.Context, report loop.Report) error {
			if !r.ended || !a.dueAt(r.last.Number) {
				return nil
			}
			state, _ := report.State().(S)
			err := a.Do(ctx, r.at(r.last, state))
			r.began = time.Now()
			return err
		}, a.Close))
	}
	return append(options, evalOptions(r.Evals, &r.evals.background)...)
}

// close is behind all tasks of a border: the history has the whole inner loop.
func (r *outerRun[S, B]) close(_ context.Context, report loop.Report) error {
	if err := r.evals.background.Err(); err != nil || !r.ended {
		return err
	}
	from, to := r.opened, report.Elapsed
	history := func() *loop.History { return rows(report.History, from.Steps, to.Steps, r.logged) }
	r.last = Inner{r.present.Number, r.present.Steps, to, history, outputs(history, r.Aggregate, r.stats)}
	r.opened, r.began = to, time.Now()
	return nil
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
