package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// Start is where a run begins: at the beginning, or behind a checkpoint.
type Start struct {
	// Found tells whether there was a checkpoint.
	Found bool
	// Elapsed is how far it was; its steps are the batches to skip: data.Skip(start.Elapsed.Steps). Steps, samples and
	// nanoseconds are 0 to 2^62 each: a checkpoint that says more is refused, and none is saved.
	Elapsed loop.Elapsed
	// History has the rows up to there.
	History *loop.History
	// Differences are what the run was saved with and what it is now, where the two differ: versions, and the settings
	// of optimizer, policy and seed. What is known behind the first step alone, as the data, [Start.Option] reports.
	Differences []Difference
	// Ended is how the run had been stopped, nil if it had not. A run that had ended stays ended: [Start.Option] has
	// this one make no turn either, and gives Ended as its [loop.Result].Stop. It goes on if its [loop.Until] is
	// another one than Ended.Until, or where the program sets Ended to nil. If Ended.Early, the rule decides that
	// stopped it: see [callbacks.StopEarly].
	Ended *Ended
	// PassedOver are newer checkpoints that could not be loaded, and why.
	PassedOver []error

	folder   *checkpoint.Folder
	saved    checkpoint.Checkpoint // without its tensors
	settings map[string]string     // that were saved
}

// Option has the run go on from there: counters, history, and the callbacks that look for better values, such as
// [callbacks.StopEarly] and [callbacks.ReduceOnPlateau], which are made again of the history's rows: those must have
// been kept. ([callbacks.KeepBest] has lost its copy with the process: if nothing better comes, the run ends in
// [callbacks.ErrBestGone]. [KeepBest] takes the best of the whole run from the folder.)
//
// Each report is called with each difference: before the first step with those in Differences, right behind it with
// what is known only then, as the size of batches, the data and their order. An error ends the run.
func (s Start) Option(report ...func(Difference) error) loop.Option {
	report = slices.Clone(report)
	options := []loop.Option{loop.Continue(s.Elapsed, s.History)}
	if s.Ended != nil && !s.Ended.Early {
		options = append(options, loop.Ended(s.Ended, s.Ended.Until))
	}
	if s.Found {
		first := loop.At(loop.Steps(s.Elapsed.Steps + 1)).AndAtStart()
		start := func(loop.Beginning) (loop.Attendant, error) {
			return watch((&reporting{start: s, report: report, reported: map[string]bool{}}).look), nil
		}
		options = append(options, loop.Callback{Name: "resume", When: first, Place: loop.AfterAll, AtRank0: true, Start: start})
	}
	return loop.Options(options...)
}

// Section reads what [Also] has saved. [checkpoint.ErrNoSection] if there is none of that name.
func (s Start) Section(name string, into any) error {
	return s.saved.Section(name, into)
}

// Resume puts the newest good checkpoint of a folder into a state (see [checkpoint.Folder.Newest] for which that is)
// and says where the run that [Save] saved was. An empty folder leaves the state alone and gives the beginning: only
// that does, and a line of the log says so. After an error the state is as it was.
//
//	start, err := runs.Resume(ctx, folder, state)
//	…
//	batches := set.Batches(32, data.Shuffle(seed), data.Forever(), data.Skip(start.Elapsed.Steps))
//	result, err := training.Run(ctx, state, batches, start.Option(), runs.Save(folder, loop.Every(loop.Steps(500))))
//
// With the same model, data and options the run goes on with the same bits of losses and parameters as one that was
// never stopped, wherever it was. Another plugin, another number of devices or another lazo may add up in another
// order, so the last bits may differ: that is no error, because the run is as good (4 devices, then 2, then 1 were
// within 1e-5). Nor is it one that the program has other settings now: of a [checkpoint.Configured] state all that
// differs is in Start.Differences, with what is in force. What the state holds is what was saved: a learning rate, the
// random numbers of a seed (State.SetLearningRate sets another rate). All else, as decay, clipping, schedule, policy
// and data, is as the program says now. Who wants the same run refuses a Start that has any.
//
// A newest checkpoint that is damaged is passed over, and stands in Start.PassedOver.
//
// Where several processes make the run together ([loop.Joined]), all of them call Resume, and rank 0 chooses the
// checkpoint that each loads: the folder must be the same for all. They go on together, or none does.
func Resume(ctx context.Context, folder *checkpoint.Folder, state checkpoint.Restorer) (Start, error) {
	if folder == nil {
		return Start{}, fmt.Errorf("checkpoint: resume: %w", errNoFolder)
	}
	var start Start
	err := chosen(ctx, folder, jobOf(state), func() (*checkpoint.Checkpoint, error) { return folder.Newest(ctx) },
		func(c *checkpoint.Checkpoint) (err error) {
			start, err = resume(ctx, folder, state, c)
			return err
		})
	if errors.Is(err, checkpoint.ErrNone) {
		folder.Options().Log.Info("checkpoint: nothing to resume from, the run begins at its beginning", "folder", folder.Dir())
		return Start{History: &loop.History{}}, nil
	}
	if err != nil {
		return Start{}, err
	}
	return start, nil
}

// ResumeAt is [Resume] from the checkpoint of a step.
func ResumeAt(ctx context.Context, folder *checkpoint.Folder, step checkpoint.Step, state checkpoint.Restorer) (Start, error) {
	if folder == nil {
		return Start{}, fmt.Errorf("checkpoint: resume from step %d: %w", step, errNoFolder)
	}
	c, err := folder.Load(ctx, step)
	if err != nil {
		return Start{}, err
	}
	return resume(ctx, folder, state, c)
}

func resume(ctx context.Context, folder *checkpoint.Folder, state checkpoint.Restorer, c *checkpoint.Checkpoint) (Start, error) {
	start, err := startOf(folder, c)
	if err == nil {
		start.Differences, err = versionDifferences(c, state)
	}
	if err == nil {
		start.Differences = append(start.Differences, differences(start.settings, settingsOf(state))...)
		err = state.Restore(ctx, c)
	}
	if err != nil {
		return Start{}, fmt.Errorf("checkpoint: resume from step %d in %s: %w", c.Step, folder.Dir(), err)
	}
	for _, change := range start.Differences {
		start.log(change)
	}
	return start, nil
}

// startOf reads the loop's part of a checkpoint, and takes its tensor away.
func startOf(folder *checkpoint.Folder, c *checkpoint.Checkpoint) (Start, error) {
	var p position
	switch err := c.Section(loopSection, &p); {
	case errors.Is(err, checkpoint.ErrNoSection):
		return Start{}, fmt.Errorf("it was not saved by a run, so nobody knows how far it was: %w %q; Folder.Load and the state's Restore take it nevertheless",
			checkpoint.ErrNoSection, loopSection)
	case err != nil:
		return Start{}, err
	}
	if err := p.check(); err != nil {
		return Start{}, err
	}
	if p.Steps != int64(c.Step) {
		return Start{}, fmt.Errorf("section %q says %d steps, %d samples and %s: expected %d steps", loopSection, p.Steps, p.Samples, p.Time, c.Step)
	}
	start := Start{Found: true, Elapsed: loop.Elapsed(p), History: &loop.History{}, PassedOver: c.PassedOver, folder: folder, saved: *c}
	start.saved.Tensors = nil
	var err error
	if start.settings, err = textsOf(c, settingsSection); err != nil {
		return Start{}, err
	}
	ended := &Ended{Step: c.Step}
	switch err := c.Section(endedSection, ended); {
	case err == nil:
		start.Ended = ended
	case !errors.Is(err, checkpoint.ErrNoSection):
		return Start{}, err
	}
	rows, ok := c.Tensor(historyTensor)
	if !ok {
		return Start{}, fmt.Errorf("the tensor %q is missing", historyTensor)
	}
	if err := start.History.ReadJSON(bytes.NewReader(rows.Data)); err != nil {
		return Start{}, err
	}
	c.Tensors = slices.DeleteFunc(c.Tensors, func(t checkpoint.Tensor) bool { return t.Name == historyTensor })
	return start, nil
}
