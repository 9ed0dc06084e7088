package outer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// run is one run of a [Loop]: tasks and callbacks of one [loop.Loop].
type run[S, B any] struct {
	Loop[S, B]
	evaluations
	from  loop.Elapsed
	start time.Time
	init  time.Duration
	// The present inner loop: the end of the one before, and since when its time counts.
	opened loop.Elapsed
	began  time.Time
	// ended tells that the turn is at the end of an inner loop: present, with its stats. It becomes last behind the
	// tasks.
	ended         bool
	present, last Inner
	stats         loop.Logs
	// logged are the entries of evaluations: they are no outputs of inner loops.
	logged map[string]bool
}

// border is due at the end of each n-th inner loop, and at the end of the run, where an inner loop ends only if it
// has a step: see run.ended.
func (r *run[S, B]) border(every InnerLoops) loop.Schedule {
	every = max(every, 1)
	if r.LoopSteps == 0 || int64(every) > math.MaxInt64/int64(r.LoopSteps) {
		return loop.AtEnd
	}
	return loop.Every(r.LoopSteps * loop.Steps(every)).AndAtEnd()
}

// beginning is due in the first turn of each n-th inner loop.
func (r *run[S, B]) beginning(every InnerLoops) loop.Schedule {
	return loop.When("begin of inner loop", func(before, after loop.Elapsed) bool {
		first := before.Steps == r.from.Steps || r.LoopSteps > 0 && before.Steps%int64(r.LoopSteps) == 0
		return first && every.due(r.number(after.Steps))
	})
}

func (r *run[S, B]) tasks() (tasks []loop.Task[S, B]) {
	type turn = loop.Turn[S, B]
	for _, a := range r.Begin {
		tasks = append(tasks, loop.OnTurn(r.beginning(a.Every), func(ctx context.Context, t *turn) error {
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
		tasks = append(tasks, loop.OnTurn(r.border(e.Every), func(ctx context.Context, t *turn) error {
			return r.evaluate(ctx, e, t)
		}).Named(e.label()))
	}
	return tasks
}

func (r *run[S, B]) begin(ctx context.Context, a Action[S], t *loop.Turn[S, B]) error {
	if err := r.group.Err(); err != nil {
		return err
	}
	now := time.Now()
	elapsed := r.opened // the state does not have the step of this turn yet
	elapsed.Time, elapsed.Date = t.Elapsed.Time, t.Elapsed.Date
	err := a.Do(ctx, r.at(Inner{Number: r.number(t.Elapsed.Steps), Elapsed: elapsed}, t.State))
	r.began = r.began.Add(time.Since(now))
	return err
}

func (r *run[S, B]) at(inner Inner, state S) Border[S] {
	return Border[S]{inner, state, maps.Clone(r.results), &r.group}
}

// end comes first at a border, because it takes the time.
func (r *run[S, B]) end(now loop.Elapsed) {
	made := now.Since(r.opened)
	if r.ended = made.Steps > 0; !r.ended {
		return // the end of the run, just behind the end of an inner loop
	}
	r.present = Inner{Number: r.number(now.Steps), Steps: made.Steps, Elapsed: now}
	r.stats = rates(made, time.Since(r.began))
	r.stats.Set(Stats, "init_time_secs", loop.Number(r.init.Seconds()))
	r.stats.Set(Stats, "life_time_secs", loop.Number(time.Since(r.start).Seconds()))
	r.stats.Set(Stats, "loop_count", loop.Number(r.present.Number))
}

func (r *run[S, B]) evaluate(ctx context.Context, e Eval[S, B], t *loop.Turn[S, B]) error {
	if !r.ended || !e.Every.due(r.present.Number) || e.When != nil && !e.When(r.present) {
		return nil
	}
	others := t.Logs.Len()
	err := e.evaluate(ctx, &r.evaluations, t, Inner{Number: r.present.Number, Elapsed: t.Elapsed})
	for entry := range t.Logs.All() {
		if others--; others < 0 {
			r.logged[entry.Path()] = true
		}
	}
	if err != nil && !isStop(err) {
		return err
	}
	if failed := r.reset(ctx, t); failed != nil {
		return failed
	}
	return err
}

// reset clears what the state has summed up.
func (r *run[S, B]) reset(ctx context.Context, t *loop.Turn[S, B]) error {
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

// options are those of the run. Its callbacks look in this order, and end in the reverse order.
func (r *run[S, B]) options() (options []loop.Option) {
	if r.TotalSteps > 0 {
		options = append(options, loop.Until(r.TotalSteps)) // the user's options come behind it: see checkEnd
	}
	options = append(options, loop.Callback{Name: "outer loop", When: loop.AtStart, Start: r.begins})
	options = append(options, closing(r.Begin)...)
	options = append(options, attend("inner loops", r.border(1), r.close, nil))
	for _, a := range r.End {
		do := func(ctx context.Context, report loop.Report) error {
			if !r.ended || !a.Every.due(r.last.Number) {
				return nil
			}
			state, _ := report.State().(S)
			err := a.Do(ctx, r.at(r.last, state))
			r.began = time.Now()
			return err
		}
		options = append(options, attend(a.label(), r.border(a.Every), do, a.Close))
	}
	return append(options, ends(r.Evals, &r.group)...)
}

// begins learns where the run begins and ends, before its first turn; what it gives looks when the first batch is
// there.
func (r *run[S, B]) begins(from loop.Beginning) (loop.Attendant, error) {
	r.from, r.opened = from.From, from.From
	err := r.checkEnd(from.Until)
	if err == nil && r.Dir != "" {
		err = remove(filepath.Join(r.Dir, StoppedFile))
	}
	return attendant{watch: func(context.Context, loop.Report) error {
		r.began = time.Now()
		r.init = r.began.Sub(r.start)
		return nil
	}}, err
}

// close is behind all tasks of a border: the history has the whole inner loop.
func (r *run[S, B]) close(_ context.Context, report loop.Report) error {
	if err := r.group.Err(); err != nil || !r.ended {
		return err
	}
	from, to := r.opened, report.Elapsed
	history := func() *loop.History { return rows(report.History, from.Steps, to.Steps, r.logged) }
	r.last = Inner{r.present.Number, r.present.Steps, to, history, outputs(history, r.Aggregate, r.stats)}
	r.opened, r.began = to, time.Now()
	return nil
}

// data opens the data inside the run, where a panic is an error.
func (r *run[S, B]) data(ctx context.Context) loop.Data[B] {
	return func(yield func(B, error) bool) {
		data, err := r.Data(ctx, r.from)
		if err == nil && data == nil {
			err = errors.New("no data given: Data gave nil")
		}
		if err != nil {
			var none B
			yield(none, err)
			return
		}
		data(yield)
	}
}

// loops is how many inner loops are done.
func (r *run[S, B]) loops(done loop.Elapsed) InnerLoops {
	whole := int64(0)
	if r.LoopSteps > 0 {
		whole = done.Steps / int64(r.LoopSteps)
	}
	return InnerLoops(max(whole, r.last.Number))
}
