package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/train"
)

// run trains, by a step, on batches, which are those of a set if it is not nil.
func (m *Model) run(ctx context.Context, f Fit, step step, set *data.Set, batches loop.Source[data.Batch]) (*loop.History, error) {
	if f.FastDevRun {
		f.StepsPerEpoch, f.Epochs, f.Until, f.ValidationSteps, f.ValidationEvery = 1, f.InitialEpoch+1, nil, 1, 1
		f.ValidationAt, f.Checkpoints = nil, nil
	}
	if err := f.checkEnd(); err != nil {
		return new(loop.History), err
	}
	if !m.fitting.CompareAndSwap(false, true) {
		return new(loop.History), fmt.Errorf("the model is %w: another Fit trains it: wait for its end, or make a second model", managed.ErrBusy)
	}
	defer m.fitting.Store(false)
	epoch := loop.Steps(f.StepsPerEpoch)
	tests := m.tests(f)
	if f.SanityEvaluation { // before a state is restored, because it resets the averages
		for _, t := range tests {
			t.Options = append(slices.Clip(t.Options), loop.Until(loop.Steps(2)))
			if _, _, err := t.Run(ctx, m); err != nil {
				return new(loop.History), fmt.Errorf("sanity evaluation on %q: %w", t.Name, err)
			}
		}
	}
	start := &start{Elapsed: m.initial(f, set)}
	training := train.Loop[*Model, data.Batch]{Step: step, Epoch: epoch, Reset: reset}
	for _, t := range tests {
		if f.ValidationEvery > 1 || len(f.ValidationAt) > 0 {
			training.Tasks = append(training.Tasks, t.On(f.testing(epoch)))
		} else {
			training.Tests = append(training.Tests, t.Evaluation)
		}
	}
	training.Tasks = append(training.Tasks, loop.OnTurn(loop.Every(epoch), func(_ context.Context, turn *loop.Turn[*Model, data.Batch]) error {
		turn.Logs.Set(progress, epochEntry, loop.Number(turn.Elapsed.Steps/int64(epoch)))
		return nil
	}))
	until := f.Until
	if until == nil {
		until = epoch * loop.Steps(max(f.Epochs, 1))
	}
	output := out(f.Output)
	say := f.Verbose.say(output)
	options := []loop.Option{loop.Until(until), loop.Continue(start.Elapsed, nil), loop.MonitorsWhen(loop.Every(epoch))}
	if !f.EachStep {
		options = append(options, loop.Keep(loop.Every(epoch)))
	}
	options = append(options, f.Verbose.bar(output, epoch), f.epochEnd(epoch))
	options = append(options, f.Callbacks...)
	if f.Checkpoints != nil {
		options = append(options, f.resume(epoch, say))
	}
	options = append(options, start.look(f, tests))
	if err := m.expect(ctx, f, training, tests, options); err != nil {
		return new(loop.History), err
	}
	result, err := training.Run(ctx, m, batches, options...)
	if result.Reason == loop.Stopped && start.Found && result.Elapsed.Steps == start.Steps {
		say("the run had ended: %v", result.Stop)
	}
	if result.Reason == loop.UntilReached && start.Found && result.Elapsed.Steps == start.Steps {
		say("the run had finished, %s, and this one is to %s: no step was made: more Epochs, or another folder, let it go on", placeOf(start.Elapsed, epoch), until)
	}
	if f.Verbose != Silent {
		sayNonFinite(result.History, epoch, say)
	}
	if err != nil && result.Elapsed.Steps == start.Steps {
		err = beforeAll(err)
	}
	if err == nil && start.Found && result.Elapsed.Steps == start.Steps {
		err = m.bringIn(ctx, batches.From(0), say)
	}
	if result.History == nil {
		result.History = new(loop.History)
	}
	if err == nil && result.Reason == loop.DataEnded {
		err = fmt.Errorf("%w after %s, in epoch %d of %s each: expected batches until %s: give more of them, or end there, by Epochs, StepsPerEpoch or Until",
			ErrDataEnded, loop.Steps(result.Elapsed.Steps), result.Elapsed.Steps/int64(epoch)+1, epoch, until)
	}
	return result.History, err
}

// placeOf is "at epoch 3", or "at step 10" where that ends no epoch.
func placeOf(at loop.Elapsed, epoch loop.Steps) string {
	if at.Steps%int64(epoch) == 0 {
		return fmt.Sprintf("at epoch %d", at.Steps/int64(epoch))
	}
	return fmt.Sprintf("at step %d", at.Steps)
}

// sayNonFinite says since when the loss of a run that has ended is no finite number: such a run trains nothing, and
// ends without an error.
func sayNonFinite(history *loop.History, epoch loop.Steps, say func(format string, args ...any)) {
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
	say("the loss is %v, and was no finite number in any row since that %s: nothing was learned from then on: callbacks.NonFinite ends or mends such a run",
		values[len(values)-1], placeOf(at[since], epoch))
}

// bringIn makes the variables of a run that had ended, which no step has brought in: the model is then as it was behind
// its last step. Without a batch, which the run needs no more, that is left to the first that comes.
func (m *Model) bringIn(ctx context.Context, source iter.Seq2[data.Batch, error], say func(format string, args ...any)) error {
	var batch data.Batch
	came := make(chan error, 1)
	go shield.Call(func() (err error) { // a source may not come, and the context ends the wait
		batch, err = data.Peek(source)
		return err
	}, func(err error) { came <- err })
	select {
	case err := <-came:
		if err == nil {
			return m.train.Prepare(ctx, m.State, batch)
		}
		say("the run had ended, and the model has no variables before its first batch: %v", err)
	case <-ctx.Done():
	}
	return nil
}

// ErrDataEnded is wrapped by the error of [Model.FitBatches] about batches that ended before the run was to. The state
// and the history are those of the steps that were made.
var ErrDataEnded = errors.New("the batches ended")

// expect notes what the first step is to look for.
func (m *Model) expect(ctx context.Context, f Fit, training train.Loop[*Model, data.Batch], tests []evaluation, options []loop.Option) error {
	m.seen.expect(nil)
	plan, err := training.Plan(options...)
	if err != nil {
		return nil // the run says so
	}
	e := &expected{tests: map[string]data.Batch{}, all: tests}
	for _, w := range plan.Callbacks {
		if w.Entry != "" {
			e.entries = append(e.entries, w.Entry)
		}
	}
	if f.Checkpoints != nil {
		for _, k := range f.Checkpoints.Options().Keep {
			if k.Metric() != "" {
				e.entries = append(e.entries, k.Metric())
			}
		}
	}
	for _, t := range tests {
		if e.entries == nil {
			break
		}
		if e.tests[t.Name], err = data.Peek(t.Data.From(0)); err != nil {
			return err
		}
	}
	m.seen.expect(e)
	return nil
}

func (s *seen) expect(e *expected) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = e
}

// resume is the option for the folder of Checkpoints.
func (f Fit) resume(epoch loop.Steps, say func(format string, args ...any)) loop.Option {
	var every loop.Period = epoch
	if f.CheckpointEvery != nil {
		every = f.CheckpointEvery
	}
	return f.Checkpoints.Resume(checkpoint.Every(every), checkpoint.Options{Changed: func(d checkpoint.Difference) error {
		say("the run is resumed: %v", d)
		if f.Changed == nil {
			return nil
		}
		return f.Changed(d)
	}})
}

// start is where a run begins.
type start struct {
	loop.Elapsed
	Found bool // in a checkpoint
}

// initial is where a run begins without a checkpoint.
func (m *Model) initial(f Fit, set *data.Set) loop.Elapsed {
	steps, size := int64(f.StepsPerEpoch)*int64(f.InitialEpoch), int64(cmp.Or(f.BatchSize, m.set.batchSize))
	if set == nil {
		return loop.Elapsed{Steps: steps, Samples: steps * size}
	}
	passes := (int64(set.Len()) + size - 1) / size // batches each
	return loop.Elapsed{Steps: steps, Samples: steps/passes*int64(set.Len()) + steps%passes*size}
}

// look learns where the run begins after a checkpoint was restored, and gives its history today's names.
func (s *start) look(f Fit, tests []evaluation) loop.Option {
	return loop.Prepare("fit", func(_ context.Context, from loop.Beginning) (loop.Option, error) {
		if s.Elapsed, s.Found = from.From, from.History != nil; !s.Found {
			return nil, nil
		}
		history, err := renamed(from.History, int64(f.StepsPerEpoch), tests)
		return loop.Continue(from.From, history), err
	})
}

// testing is when to test, where that is not each epoch.
func (f Fit) testing(epoch loop.Steps) loop.Schedule {
	if len(f.ValidationAt) == 0 {
		return loop.Every(epoch * loop.Steps(f.ValidationEvery))
	}
	var at []loop.Schedule
	for _, n := range f.ValidationAt {
		at = append(at, loop.At(epoch*loop.Steps(n)))
	}
	return loop.Any(at...)
}

func reset(ctx context.Context, m *Model) (*Model, error) { return m.ResetStep(ctx) }

// tests are those of the validation sets, by their names.
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
