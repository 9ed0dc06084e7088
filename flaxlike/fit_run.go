package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/xla"
)

func (m *Model) run(ctx context.Context, f Fit, step step, set *data.Set, batches loop.Source[data.Batch]) (*loop.History, error) {
	if f.FastDevRun {
		f.StepsPerEpoch, f.Epochs, f.Until, f.ValidationSteps, f.ValidationEvery = 1, f.InitialEpoch+1, nil, 1, 1
		f.ValidationAt = nil
		f.Callbacks = append([]loop.Option{loop.Prepare("fast dev run", func(context.Context, loop.Beginning) (loop.Option, error) {
			return dry{loop.Options()}, nil
		})}, f.Callbacks...)
	}
	if err := f.checkEnd(); err != nil {
		return new(loop.History), err
	}
	if !m.fitting.CompareAndSwap(false, true) {
		return new(loop.History), fmt.Errorf("the model is %w: another Fit trains it: wait for its end, or make a second model", xla.ErrBusy)
	}
	defer m.fitting.Store(false)
	m.seen.begin()
	begin := &runPlace{}
	history, err := m.runFrom(ctx, f, step, set, batches, begin)
	m.noteFit(set, history, begin.Steps)
	return history, err
}

// dry keeps checkpoint.Resume out of a FastDevRun.
type dry struct{ loop.Option }

func (dry) Dry() {}

var _ abilities.Dry = dry{}

func (m *Model) runFrom(ctx context.Context, f Fit, step step, set *data.Set, batches loop.Source[data.Batch], begin *runPlace) (*loop.History, error) {
	tests := m.tests(f)
	if f.SanityEvaluation {
		for _, t := range tests {
			t.Options = append(slices.Clip(t.Options), loop.Until(loop.Steps(2)))
			if _, _, err := t.Run(ctx, m); err != nil {
				return new(loop.History), fmt.Errorf("sanity evaluation on %q: %w", t.Name, err)
			}
		}
	}
	size := cmp.Or(f.BatchSize, m.set.batchSize)
	whole := set != nil && f.StepsPerEpoch == (set.Len()+size-1)/size
	training := train.Loop[*Model, data.Batch]{Step: step, Epoch: loop.Epochs(1), Reset: reset}
	for _, t := range tests {
		if f.ValidationEvery > 1 || len(f.ValidationAt) > 0 {
			training.Tasks = append(training.Tasks, t.On(f.testing()))
		} else {
			training.Tests = append(training.Tests, t.Evaluation)
		}
	}
	training.Tasks = append(training.Tasks, loop.OnTurn(eachEpoch, func(_ context.Context, turn *loop.Turn[*Model, data.Batch]) error {
		turn.Logs.Set(progress, epochEntry, turn.Elapsed.Epochs)
		return nil
	}))
	until := f.Until
	if until == nil {
		until = loop.Epochs(max(f.Epochs, 1))
	}
	output := linesTo(f.Output)
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(output, "fit: "+format+"\n", args...) } // an error of the output does not end the run
	options := []loop.Option{loop.Until(until), loop.MonitorsWhen(eachEpoch)}
	if !f.EachStep {
		options = append(options, loop.Keep(eachEpoch))
	}
	options = append(options, f.bar(output), loop.Watch(eachEpoch, func(_ context.Context, report loop.Report) error {
		m.note(set, report.History, figures{at: m.seen.changes.Load(), row: report.Logs})
		return nil
	}))
	options = append(options, f.Callbacks...)
	options = append(options, m.place(begin, f, set, tests, say))
	if err := m.expect(training, tests, options); err != nil {
		return new(loop.History), err
	}
	result, err := training.Run(ctx, m, epochsOf(batches, begin, int64(f.StepsPerEpoch), whole), options...)
	if result.Reason == loop.Stopped && begin.found && result.Elapsed.Steps == begin.Steps {
		say("the run had ended: %v", result.Stop)
	}
	if result.Reason == loop.UntilReached && begin.found && result.Elapsed.Steps == begin.Steps {
		say("the run had finished, %s, and this run's end is %s: no step was made: set more Epochs to continue, or use another folder", placeOf(begin.Elapsed, result.History), until)
	}
	if f.Output != io.Discard {
		sayNonFinite(result.History, say)
	}
	if err != nil && result.Elapsed.Steps == begin.Steps {
		err = beforeAll(err)
	}
	if err == nil && begin.found && result.Elapsed.Steps == begin.Steps {
		err = m.bringIn(ctx, batches.From(0), say)
	}
	if result.History == nil {
		result.History = new(loop.History)
	}
	if err == nil && result.Reason == loop.DataEnded {
		err = fmt.Errorf("%w after %s, in epoch %d of %s each: expected batches until %s: give more batches, or end the run there, by Epochs, StepsPerEpoch or Until",
			ErrDataEnded, loop.Steps(result.Elapsed.Steps), result.Elapsed.Epochs+1, loop.Steps(f.StepsPerEpoch), until)
	}
	return result.History, err
}

func (m *Model) tests(f Fit) (tests []evaluation) {
	sets := maps.Clone(f.Validations)
	if f.Validation != nil {
		if sets == nil {
			sets = map[string]*data.Set{}
		}
		sets["val"] = f.Validation
	}
	if f.ValidationBatches != nil {
		if sets == nil {
			sets = map[string]*data.Set{}
		}
		sets["val"] = nil
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		t := m.testOn(f.ValidationBatches)
		if sets[name] != nil {
			t = m.testOf(sets[name], cmp.Or(f.ValidationBatchSize, f.BatchSize, m.set.batchSize))
		}
		t.Name = name
		if f.ValidationSteps > 0 {
			t.Options = append(t.Options, loop.Until(loop.Steps(f.ValidationSteps)))
		}
		tests = append(tests, t)
	}
	return tests
}

func reset(ctx context.Context, m *Model) (*Model, error) { return m.ResetStep(ctx) }

func beforeAll(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if u, ok := e.(*untrained); ok {
			return fmt.Errorf("before the first step: %w", graphs.Inner(u.error))
		}
	}
	return err
}

func (m *Model) expect(training train.Loop[*Model, data.Batch], tests []evaluation, options []loop.Option) error {
	m.seen.expect(nil)
	plan, err := training.Plan(options...)
	if err != nil {
		return nil
	}
	e := &expected{tests: map[string]data.Batch{}, all: tests}
	if err := e.wait(plan.Entries); err != nil {
		return err
	}
	m.seen.expect(e)
	return nil
}

func (m *Model) resumed(prepared []loop.Option, say func(format string, args ...any)) error {
	m.seen.mu.Lock()
	e := m.seen.expected
	m.seen.mu.Unlock()
	for _, option := range prepared {
		r, ok := option.(abilities.Resumed)
		if !ok {
			continue
		}
		r.OnDifference(func(d fmt.Stringer) { say("the run is resumed: %v", d) })
		if err := e.wait(r.Entries()); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) initial(f Fit, set *data.Set) loop.Elapsed {
	at := loop.Elapsed{Steps: int64(f.StepsPerEpoch) * int64(f.InitialEpoch), Epochs: int64(f.InitialEpoch)}
	size := int64(cmp.Or(f.BatchSize, m.set.batchSize))
	if at.Samples = at.Steps * size; set != nil {
		passes := (int64(set.Len()) + size - 1) / size
		at.Samples = at.Steps/passes*int64(set.Len()) + at.Steps%passes*size
	}
	return at
}

func (m *Model) place(begin *runPlace, f Fit, set *data.Set, tests []evaluation, say func(format string, args ...any)) loop.Option {
	return loop.Prepare("fit", func(ctx context.Context, from loop.Beginning) (loop.Option, error) {
		if err := m.resumed(from.Prepared, say); err != nil {
			return nil, err
		}
		if from.History == nil {
			begin.Elapsed = m.initial(f, set)
			_, err := m.ResetStep(ctx) // an earlier Fit may have ended within an epoch
			return loop.Continue(begin.Elapsed, nil), err
		}
		history, err := restoredHistory(from.History, int64(f.StepsPerEpoch), tests)
		if err != nil {
			return nil, err
		}
		*begin = placeAfter(from.From, history, int64(f.StepsPerEpoch))
		if begin.Epochs < int64(f.InitialEpoch) {
			return nil, fmt.Errorf("the checkpoint is of step %d, in epoch %d, before InitialEpoch %d\n  leave InitialEpoch out: the checkpoint has the position to continue from",
				begin.Steps, begin.Epochs+1, f.InitialEpoch)
		}
		return loop.Continue(begin.Elapsed, history), nil
	})
}

func placeOf(at loop.Elapsed, history *loop.History) string {
	ends, epochs, _ := history.Series(epochEntry)
	i := slices.IndexFunc(ends, func(end loop.Elapsed) bool { return end.Steps == at.Steps })
	if i >= 0 {
		return fmt.Sprintf("at epoch %v", epochs[i])
	}
	return fmt.Sprintf("at step %d", at.Steps)
}

func sayNonFinite(history *loop.History, say func(format string, args ...any)) {
	const entry = string(loop.Losses) + "." + trained
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	if history == nil {
		return
	}
	if last, err := history.Last(entry); err != nil || finite(last) {
		return
	}
	at, values, err := history.Series(entry)
	if err != nil {
		return
	}
	since := len(values) - 1
	for since > 0 && !finite(values[since-1]) {
		since--
	}
	say("the loss is %v, and was not finite in any row since that %s: nothing was learned from then on: callbacks.NonFinite ends or repairs such a run, and names frequent causes",
		values[len(values)-1], placeOf(at[since], history))
}

// bringIn creates the variables after an ended run, or leaves them to the next batch.
func (m *Model) bringIn(ctx context.Context, source iter.Seq2[data.Batch, error], say func(format string, args ...any)) error {
	var batch data.Batch
	came := make(chan error, 1)
	go shield.Call(func() (err error) { // the source may block
		batch, err = data.Peek(source)
		return err
	}, func(err error) { came <- err })
	select {
	case err := <-came:
		if err == nil {
			return m.train.Prepare(ctx, m.state, batch)
		}
		say("the run had ended, and the model has no variables before its first batch: %v", err)
	case <-ctx.Done():
	}
	return nil
}

func (m *Model) noteFit(set *data.Set, history *loop.History, began int64) {
	if history.Len() == 0 {
		return
	}
	var last loop.Logs
	now := m.seen.changes.Add(1) // a Fit without a step may restore a checkpoint
	has := m.seen.has(began)
	for at, row := range history.Rows() {
		if at.Steps == has {
			last = row
		}
	}
	m.note(set, history, figures{at: now, row: last})
}

func (m *Model) note(set *data.Set, history *loop.History, fitted figures) {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	c := &m.seen.card
	m.seen.fitted, c.Epochs, c.Examples, c.Fields = fitted, history.Len(), 0, nil
	if set == nil {
		return
	}
	if c.Examples = set.Len(); set.Mapped() {
		return
	}
	for _, f := range set.Fields() {
		c.Fields = append(c.Fields, fmt.Sprint(f.Name, " ", f.Array.DType(), " ", f.Array.Dims[1:]))
	}
}
