package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Restorer is a state into which a checkpoint can be put; a managed.State is one.
type Restorer interface {
	// Restore takes the tensors and sections that Content gave. After an error the state is as it was.
	Restore(ctx context.Context, c *Checkpoint) error
}

// Start is where a run begins: at the beginning, or behind a checkpoint.
type Start struct {
	// Found tells whether there was a checkpoint.
	Found bool
	// Elapsed is how far it was; its steps are the batches to skip: data.Skip(start.Elapsed.Steps). Steps, samples and nanoseconds are
	// 0 to 2^62 each: a checkpoint that says more is refused, and none is saved.
	Elapsed loop.Elapsed
	// History has the rows up to there.
	History *loop.History
	// Changes are what the run was saved with and what it is now, where the two differ: versions, and the settings of optimizer,
	// policy and seed. What is known behind the first step alone, as the data, [Start.Option] tells.
	Changes []Change
	// Ended is how the run had been stopped, nil if it had not. A run that had ended stays ended: [Start.Option] has this one make
	// no turn either, and gives Ended as its [loop.Result].Stop. It goes on if its [loop.Until] is another one than Ended.Until, or
	// where the program sets Ended to nil. If Ended.Early, the rule decides that stopped it: see [callbacks.StopEarly].
	Ended *Ended
	// PassedOver are newer checkpoints that could not be loaded, and why.
	PassedOver []error

	folder   *Folder
	step     Step
	settings map[string]string // that were saved
	sections map[string]json.RawMessage
}

// Option has the run go on from there: counters, history, and the callbacks that look for better values, such as
// [callbacks.StopEarly] and [callbacks.ReduceOnPlateau], which are made again of the history's rows: those must have been kept.
// ([callbacks.KeepBest] has lost its copy with the process: if nothing better comes, the run ends in [callbacks.ErrBestGone]. [KeepBest] takes the
// best of the whole run from the folder.)
//
// Each tell hears of each change: before the first step of those in Changes, right behind it of what is known then alone, as the size
// of batches, the data and their order. An error ends the run.
func (s Start) Option(tell ...func(Change) error) loop.Option {
	tell = slices.Clone(tell)
	options := []loop.Option{loop.From(s.Elapsed, s.History)}
	if s.Ended != nil && !s.Ended.Early {
		options = append(options, loop.Ended(s.Ended, s.Ended.Until))
	}
	if s.Found {
		first := loop.At(loop.Steps(s.Elapsed.Steps + 1)).AndAtStart()
		options = append(options, loop.Callback{Name: "resume", When: first, Place: loop.AfterAll, Start: func(loop.Beginning) (loop.Attendant, error) {
			return &telling{start: s, tell: tell, told: map[string]bool{}}, nil
		}})
	}
	return loop.Options(options...)
}

// Section reads what [Also] has saved. [ErrNoSection] if there is none of that name.
func (s Start) Section(name string, into any) error {
	return (&Checkpoint{Info: Info{Step: s.step}, sections: s.sections}).Section(name, into)
}

// Resume puts the newest good checkpoint of a folder into a state (see [Folder.Newest] for which that is) and says where
// the run that [Save] saved was. An empty folder leaves the state alone and gives the beginning: only that does, and a line of the
// log says so. After an error the state is as it was.
//
//	start, err := checkpoint.Resume(ctx, folder, state)
//	…
//	batches := set.Batches(32, data.Shuffle(seed), data.Forever(), data.Skip(start.Elapsed.Steps))
//	result, err := training.Run(ctx, state, batches, start.Option(), checkpoint.Save(folder, loop.Every(loop.Steps(500))))
//
// With the same model, data and options the run goes on with the same bits of losses and parameters as one that was never
// stopped, wherever it was. Another plugin, another number of devices or another lazo may add up in another order, so the last bits may
// differ: that is no error, because the run is as good (4 devices, then 2, then 1 were within 1e-5). Nor is it one that the program has
// other settings now: of a [Configured] state all that differs is in Start.Changes, with what is in force. What the state holds is
// what was saved: a learning rate, the random numbers of a seed (State.SetLearningRate sets another rate). All else, as decay,
// clipping, schedule, policy and data, is as the program says now. Who wants the same run refuses a Start that has any.
//
// A newest checkpoint that is damaged is passed over, and stands in Start.PassedOver.
func Resume(ctx context.Context, folder *Folder, state Restorer) (Start, error) {
	c, err := folder.Newest(ctx)
	if errors.Is(err, ErrNone) {
		folder.log.Info("checkpoint: nothing to resume from, the run begins at its beginning", "folder", folder.dir)
		return Start{History: &loop.History{}}, nil
	}
	return resume(ctx, folder, state, c, err)
}

// ResumeAt is [Resume] from the checkpoint of a step.
func ResumeAt(ctx context.Context, folder *Folder, step Step, state Restorer) (Start, error) {
	c, err := folder.Load(ctx, step)
	return resume(ctx, folder, state, c, err)
}

func resume(ctx context.Context, folder *Folder, state Restorer, c *Checkpoint, err error) (Start, error) {
	if err != nil {
		return Start{}, err
	}
	start, err := startOf(folder, c)
	if err == nil {
		start.Changes, err = changedVersions(c, state)
	}
	if err == nil {
		start.Changes = append(start.Changes, changes(start.settings, settingsOf(state))...)
		err = state.Restore(ctx, c)
	}
	if err != nil {
		return Start{}, fmt.Errorf("checkpoint: resume from step %d in %s: %w", c.Step, folder.dir, err)
	}
	for _, change := range start.Changes {
		start.log(change)
	}
	return start, nil
}

// startOf reads the loop's part of a checkpoint, and takes its tensor away.
func startOf(folder *Folder, c *Checkpoint) (Start, error) {
	var p position
	switch err := c.Section(loopSection, &p); {
	case errors.Is(err, ErrNoSection):
		return Start{}, fmt.Errorf("it was not saved by a run, so nobody knows how far it was: %w %q; Folder.Load and the state's Restore take it nevertheless",
			ErrNoSection, loopSection)
	case err != nil:
		return Start{}, err
	}
	if err := p.check(); err != nil {
		return Start{}, err
	}
	if p.Steps != int64(c.Step) {
		return Start{}, fmt.Errorf("section %q says %d steps, %d samples and %s: expected %d steps", loopSection, p.Steps, p.Samples, p.Time, c.Step)
	}
	start := Start{Found: true, Elapsed: loop.Elapsed{Steps: p.Steps, Samples: p.Samples, Time: p.Time, Date: p.Date},
		History: &loop.History{}, PassedOver: c.PassedOver, folder: folder, step: c.Step, sections: c.sections}
	var err error
	if start.settings, err = textsOf(c, settingsSection); err != nil {
		return Start{}, err
	}
	ended := &Ended{Step: c.Step}
	switch err := c.Section(endedSection, ended); {
	case err == nil:
		start.Ended = ended
	case !errors.Is(err, ErrNoSection):
		return Start{}, err
	}
	rows, ok := c.Tensor(historyTensor)
	if !ok {
		return Start{}, fmt.Errorf("the tensor %q is missing", historyTensor)
	}
	if err := start.History.ReadJSON(bytes.NewReader(rows.Data)); err != nil {
		return Start{}, err
	}
	c.Tensors = slices.DeleteFunc(c.Tensors, func(t Tensor) bool { return t.Name == historyTensor })
	return start, nil
}

// Best loads the checkpoint that a retention by metric ([Lowest], [Highest]) puts first, as Best(ctx, Lowest(1, "loss_test")).
// [ErrNone] if no checkpoint has a finite value of the metric.
func (f *Folder) Best(ctx context.Context, by Retention) (*Checkpoint, error) {
	step, err := f.best(ctx, by)
	if err != nil {
		return nil, f.wrap(err, "best by %v", by)
	}
	return f.Load(ctx, step)
}

func (f *Folder) best(ctx context.Context, by Retention) (Step, error) {
	if err := by.checkBest(); err != nil {
		return 0, err
	}
	list, err := f.List(ctx)
	if err != nil {
		return 0, err
	}
	list = slices.DeleteFunc(list, func(i Info) bool { return i.Err != nil })
	keep := make([]bool, len(list))
	by.mark(list, keep)
	if i := slices.Index(keep, true); i >= 0 {
		return list[i].Step, nil
	}
	return 0, ErrNone
}

// metrics are the names that the folder's retention goes by.
func (f *Folder) metrics() []string {
	var names []string
	for _, k := range f.options.Keep {
		if k.byMetric && !slices.Contains(names, k.entry) {
			names = append(names, k.entry)
		}
	}
	return names
}

// Restored is a folder as the place where the loops of package train keep states, see train.Checkpoints. What [Save] saves
// can be evaluated so by another process.
type Restored[S interface {
	State
	Restorer
}] struct{ Folder *Folder }

// Steps lists the checkpoints that are complete.
func (r Restored[S]) Steps(ctx context.Context) ([]int64, error) {
	list, err := r.Folder.List(ctx)
	var steps []int64
	for _, i := range list {
		if i.Err == nil {
			steps = append(steps, int64(i.Step))
		}
	}
	return steps, err
}

// Restore puts the checkpoint of a step into a state.
func (r Restored[S]) Restore(ctx context.Context, into S, step int64) (S, loop.Elapsed, error) {
	start, err := ResumeAt(ctx, r.Folder, Step(step), into)
	return into, start.Elapsed, err
}

// Save saves a state without a history, and waits for the disk.
func (r Restored[S]) Save(ctx context.Context, state S, at loop.Elapsed) error {
	content, err := (&saving{}).content(ctx, loop.WithState(loop.Report{Elapsed: at}, &state), nil)
	if err != nil {
		return err
	}
	return r.Folder.Save(ctx, Step(at.Steps), content)
}
