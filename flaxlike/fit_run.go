package flaxlike

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// run trains. batches gives those that are left when so many are done, of which so many were made by a run that was saved.
func (m *Model) run(ctx context.Context, f Fit, batches func(done, saved int64) loop.Data[data.Batch]) (*loop.History, error) {
	if f.FastDevRun {
		f.StepsPerEpoch, f.Epochs, f.Until, f.ValidationSteps, f.ValidationEvery = 1, f.InitialEpoch+1, nil, 1, 1
		f.ValidationAt, f.Checkpoints = nil, nil
	}
	if err := f.checkEnd(); err != nil {
		return new(loop.History), err
	}
	epoch := loop.Steps(f.StepsPerEpoch)
	tests := m.tests(f)
	if f.SanityEvaluation { // before a state is restored, because it resets the averages
		for _, t := range tests {
			t.Length = loop.Steps(2)
			if _, err := t.Run(ctx, m); err != nil {
				return new(loop.History), fmt.Errorf("sanity evaluation on %q: %w", t.Name, err)
			}
		}
	}
	start, err := m.start(ctx, f)
	if err != nil {
		return new(loop.History), err
	}
	training := train.Loop[*Model, data.Batch]{Step: step{m.train}, Epoch: epoch, Reset: reset, Tests: tests}
	if f.ValidationEvery > 1 || len(f.ValidationAt) > 0 {
		training.Tests = nil
		for _, t := range tests {
			training.Tasks = append(training.Tasks, t.On(f.testing(epoch)))
		}
	}
	if f.LogRate {
		training.Tasks = append(training.Tasks, loop.OnTurn(loop.Every(epoch), func(_ context.Context, turn *loop.Turn[*Model, data.Batch]) error {
			rate, err := turn.State.LearningRate()
			turn.Logs.Metric("learning_rate", rate)
			return err
		}))
	}
	until := f.Until
	if until == nil {
		until = epoch * loop.Steps(max(f.Epochs, 1))
	}
	options := []loop.Option{loop.Until(until), start.Option()}
	if !f.EachStep {
		options = append(options, loop.Keep(loop.Every(epoch)))
	}
	options = append(options, f.Verbose.options(f.Output, epoch, max(f.Epochs, 1), f.Until == nil)...)
	options = append(options, f.Callbacks...)
	if f.Checkpoints != nil {
		var every loop.Period = epoch
		if f.CheckpointEvery != nil {
			every = f.CheckpointEvery
		}
		options = append(options, checkpoint.Save(f.Checkpoints, loop.Every(every)))
	}
	saved := int64(0)
	if start.Found {
		saved = start.Elapsed.Steps
	}
	result, err := training.Run(ctx, m, batches(start.Elapsed.Steps, saved), options...)
	if result.History == nil {
		result.History = new(loop.History)
	}
	return result.History, err
}

// start is where the run begins: behind the newest checkpoint, or with the initial epoch.
func (m *Model) start(ctx context.Context, f Fit) (start checkpoint.Start, err error) {
	if f.Checkpoints != nil {
		if start, err = checkpoint.Resume(ctx, f.Checkpoints, m); err != nil {
			return start, err
		}
	}
	initial := int64(f.StepsPerEpoch) * int64(f.InitialEpoch)
	switch {
	case !start.Found:
		start.Elapsed = loop.Elapsed{Steps: initial, Samples: initial * int64(cmp.Or(f.BatchSize, m.set.batchSize))}
	case start.Elapsed.Steps < initial:
		return start, fmt.Errorf("the newest checkpoint is of step %d, before InitialEpoch %d, which begins at step %d\n  leave InitialEpoch out: the checkpoint says where to go on", start.Elapsed.Steps, f.InitialEpoch, initial)
	}
	return start, nil
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
func (m *Model) tests(f Fit) (tests []train.Test[*Model, data.Batch]) {
	sets := maps.Clone(f.Validations)
	if f.Validation != nil {
		if sets == nil {
			sets = map[string]*data.Set{}
		}
		sets["val"] = f.Validation
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		t := m.testOf(sets[name], cmp.Or(f.ValidationBatchSize, f.BatchSize, m.set.batchSize))
		t.Name = name
		if f.ValidationSteps > 0 {
			t.Length = loop.Steps(f.ValidationSteps)
		}
		tests = append(tests, t)
	}
	return tests
}
