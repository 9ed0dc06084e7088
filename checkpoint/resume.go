package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// Resume is an option of a run that saves it into a folder and resumes it from there.
//
// The run opens or creates the folder and restores the newest good checkpoint ([Folder.Newest]), if any, into the
// state, a [State]. Counts, data, history and callbacks continue. With the same model, data, options, plugin, devices
// and version of lazo, the result is bit-identical to an unstopped run's.
//
// The learning rate and the random numbers continue as saved. Clipping, decay, schedules, policy and data are the
// program's. Differences of the [State]'s Settings and Versions, and of the versions of Go, lazo and GoMLX, are
// logged as warnings; [Options].Changed may refuse them. Another model is an error.
//
// A run that was stopped ([loop.ErrStop], not [loop.ErrPause]) makes no further step, unless its [loop.Until]
// differs.
//
// A run is saved on a schedule ([Every]), in each iteration whose metric is good enough to be kept ([KeepBest],
// [Options].Keep), and at its end, even if cancelled, but not if it failed or was cancelled within an iteration. A
// checkpoint has the state, the elapsed counts, and the history (bound it by [loop.Thin]). The end is marked for
// [Follow], before the best state is put back, unless the run failed, was cancelled, or pauses.
//
// Saves run in the background ([Async]). An iteration waits only for the copy, made after the callbacks of a lower
// Order. A newer checkpoint never replaces a waiting best one. An error of a save ends the run at the next step or
// block, or at its end ([Options].Tolerate). After a cancellation, saves may take five more minutes.
//
// All processes of a job ([loop.Job]) must see the same folder and return the same error.
//
// Several Options are merged: lists are appended, and of other fields the last set value counts. A run may have one
// Resume per folder.
func Resume(dir string, options ...Options) loop.Option {
	return resume(dir, options, func(o Options, job loop.Job) (*Folder, error) {
		// If one is damaged, the other can be resumed.
		if !slices.ContainsFunc(o.Keep, func(r Retention) bool { return r.Last != 0 }) {
			o.Keep = append(slices.Clip(o.Keep), Retention{Last: 2})
		}
		return openTogether(dir, o.opening(), job)
	})
}

// Resume is [Resume] for an open folder, like one of [OpenStore], which keeps its options and stays open. In a job,
// rank 0 opens it for writing, the others ReadOnly.
func (f *Folder) Resume(options ...Options) loop.Option {
	dir := ""
	if f != nil {
		dir = f.dir
	}
	return resume(dir, options, func(o Options, _ loop.Job) (*Folder, error) {
		if f == nil {
			return nil, errors.New("checkpoint: resume: no folder given")
		}
		if name := o.ofFolder(); name != "" {
			return nil, fmt.Errorf("checkpoint: resume in %s: the folder is open: give %s to Open", f.dir, name)
		}
		return f, nil
	}, f)
}

func resume(dir string, options []Options, open func(Options, loop.Job) (*Folder, error), kept ...*Folder) loop.Option {
	options = slices.Clone(options)
	prepare := loop.Prepare(abilities.Resume, func(ctx context.Context, from loop.Beginning) (loop.Option, error) {
		o := merged(options)
		if err := o.check(); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
		if err := once(from, dir, kept); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(from.Prepared, func(option loop.Option) bool { _, dry := option.(abilities.Dry); return dry }) {
			return nil, nil
		}
		folder, err := open(o, from.Job)
		if err != nil {
			return nil, err
		}
		s := &saving{Options: o, folder: folder, async: folder.Async(), job: from.Job, closes: !slices.Contains(kept, folder)}
		option, err := s.prepare(ctx, from)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.Option = option
		return s, nil
	})
	best := merged(options).Best
	if best == "" {
		return prepare
	}
	// The loop then finds an entry that is not logged before the first step.
	return loop.Options(prepare, loop.WatchEntry(best, func(context.Context, loop.Report) error { return nil }))
}

func once(from loop.Beginning, dir string, kept []*Folder) error {
	for _, option := range from.Prepared {
		if other, ok := option.(*saving); ok && (slices.Contains(kept, other.folder) || sameDir(dir, other.folder.dir)) {
			return &twiceError{dir}
		}
	}
	return nil
}

func sameDir(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

var _ abilities.Resumed = (*saving)(nil)

func (s *saving) OnDifference(f func(fmt.Stringer)) {
	if s.reporting == nil {
		return
	}
	for _, d := range s.reporting.found {
		f(d)
	}
	s.reporting.watcher = f
}

func (s *saving) Entries() (names []string) {
	for _, k := range s.folder.Options().Keep {
		if k.Metric != "" {
			names = append(names, k.Metric)
		}
	}
	return names
}

func (s *saving) Close() error {
	if s.release != nil {
		s.release()
	}
	switch {
	case !s.closes:
		return nil
	case s.async.writes():
		// A hanging store must not delay the end further.
		go func() { _ = errors.Join(s.async.Close(), s.folder.Close()) }()
		return nil
	}
	return s.folder.close(s.folder.options.LeaveSharded)
}

func (s *saving) prepare(ctx context.Context, from loop.Beginning) (loop.Option, error) {
	var err error
	if s.writes() {
		s.release, err = s.folder.reserve()
	}
	if err := together(s.job, "take the folder for this run", err); err != nil {
		return nil, err
	}
	state, ok := abilities.StateAs[State](from)
	if !ok {
		return nil, fmt.Errorf("checkpoint: a state of type %T cannot be saved and restored: give it the methods Content and Restore of checkpoint.State", from.State())
	}
	if s.Best != "" {
		best := s.bestRule()
		s.folder.best.Store(&best)
	}
	start, err := s.restore(ctx, state)
	if err != nil {
		return nil, err
	}
	return s.continued(start, from)
}

func (s *saving) writes() bool { return s.job == nil || s.job.Rank() == 0 }

func (s *saving) restore(ctx context.Context, state State) (*resumption, error) {
	var begin *resumption
	find := func() (*Checkpoint, error) {
		if s.At != nil {
			return s.folder.Load(ctx, *s.At)
		}
		return s.folder.Newest(ctx)
	}
	err := chosen(ctx, s.folder, s.job, find, func(c *Checkpoint) (err error) {
		begin, err = s.folder.restore(ctx, state, c, s.Also, s.Same)
		return err
	})
	if errors.Is(err, ErrNone) {
		s.folder.Options().Log.Info("checkpoint: nothing to resume from, the run begins at step 0", "folder", s.folder.Dir())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, d := range begin.differences {
		s.folder.logDifference(begin.step, d)
	}
	return begin, nil
}

func (s *saving) continued(start *resumption, from loop.Beginning) (loop.Option, error) {
	options := s.options()
	if s.Best != "" {
		options = append(options, s.bestBack())
	}
	if start == nil {
		return loop.Options(options...), nil
	}
	s.resumed = start
	at := start.elapsed
	if at.Steps < from.From.Steps {
		return nil, fmt.Errorf("checkpoint: the checkpoint of step %d in %s is before step %d, at which the run is set to begin: leave that setting out, the checkpoint has the position to continue from",
			at.Steps, s.folder.Dir(), from.From.Steps)
	}
	s.folder.Options().Log.Info("checkpoint: the run is resumed", "folder", s.folder.Dir(), "step", at.Steps)
	var stop []error
	if start.ended.holds(from.Until) && !s.IgnoreEnd {
		s.over = true
		stop = append(stop, start.ended)
	}
	report := &reporting{resumption: start, folder: s.folder, changed: s.Changed, reported: map[string]bool{}}
	s.reporting = report
	var err error
	if s.writes() {
		err = report.look(start.differences)
	}
	if err := together(s.job, "continue with what differs from the saved run", err); err != nil {
		return nil, err
	}
	// The data and the batch size are known after the first step.
	first := loop.At(loop.Steps(at.Steps + 1)).AndAtStart()
	attend := func(from loop.Beginning) (loop.Attendant, error) {
		if from.Skipped > 0 {
			s.folder.Options().Log.Warn("checkpoint: the data cannot begin at a position: the batches before the run's position are read and discarded",
				"folder", s.folder.Dir(), "batches", from.Skipped)
		}
		return watch(report.watch), nil
	}
	options = append(options, loop.Continue(at, start.history, stop...),
		loop.Callback{Name: "resume", When: first, Order: 1, AtRank0: true, Start: attend})
	return loop.Options(options...), nil
}

type resumption struct {
	step        Step
	elapsed     loop.Elapsed
	history     *loop.History
	differences []Difference
	ended       *ended
	settings    map[string]string
	stated      map[string]string
}

func (f *Folder) restore(ctx context.Context, state State, c *Checkpoint, also map[string]any, same any) (*resumption, error) {
	start, err := f.startOf(c, state)
	if err == nil && same != nil {
		err = f.compare(start, c, same)
	}
	if err == nil {
		err = c.restoreAlso(also)
	}
	if err == nil {
		err = state.Restore(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: resume from step %d in %s: %w", c.Step, f.Dir(), err)
	}
	return start, nil
}

func (f *Folder) startOf(c *Checkpoint, state State) (*resumption, error) {
	var p position
	switch err := c.Section(loopSection, &p); {
	case errors.Is(err, ErrNoSection):
		return nil, fmt.Errorf("it was not saved by a run, so its position is unknown: %w %q; load it with Folder.Load and the state's Restore",
			ErrNoSection, loopSection)
	case err != nil:
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Steps != int64(c.Step) {
		return nil, fmt.Errorf("section %q says %d steps, %d samples and %s: expected %d steps", loopSection, p.Steps, p.Samples, p.Time, c.Step)
	}
	start := &resumption{step: c.Step, elapsed: loop.Elapsed(p), history: &loop.History{}}
	for _, err := range c.PassedOver {
		start.differences = append(start.differences, Difference{What: "newest checkpoint", Now: fmt.Sprintf("that of step %d", c.Step), Err: err})
	}
	changed, err := versionDifferences(c, state)
	if err != nil {
		return nil, err
	}
	if start.settings, err = textsOf(c, settingsSection); err != nil {
		return nil, err
	}
	now := settingsOf(state)
	start.stated = noted(now)
	start.differences = slices.Concat(start.differences, changed, differences(start.settings, now))
	end := &ended{Step: c.Step}
	switch err := c.Section(endedSection, end); {
	case err == nil:
		start.ended = end
	case !errors.Is(err, ErrNoSection):
		return nil, err
	}
	rows, ok := c.Tensor(historyTensor)
	if !ok {
		return nil, fmt.Errorf("the tensor %q is missing", historyTensor)
	}
	if err := start.history.ReadJSON(bytes.NewReader(rows.Data)); err != nil {
		return nil, err
	}
	c.Tensors = slices.DeleteFunc(c.Tensors, func(t Tensor) bool { return t.Name == historyTensor })
	return start, nil
}
