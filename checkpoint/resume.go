package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// Resume is an option of a run. It makes the run one that can be killed and started again at any time:
//
//	result, err := training.Run(ctx, state, batches, loop.Until(loop.Steps(10000)),
//		checkpoint.Resume("run", checkpoint.Every(loop.Steps(500)), checkpoint.KeepBest("loss_test")))
//
// When the run starts, it opens the folder, or makes it, and restores the newest good checkpoint (see [Folder.Newest])
// into the state. The run then continues from there: it counts on, takes its data from that position, adds rows to the
// history, and callbacks that look for better values ([callbacks.StopEarly], [callbacks.ReduceOnPlateau]) know the
// earlier ones. An empty folder leaves the state as it is: only that does, and a line of the log says so.
//
// With the same model, data and options, a resumed run ends with the same losses and parameters, bit for bit, as one
// that was never stopped. Another plugin, another number of devices or another lazo may add in another order; the last
// bits may then differ. That is no error, and nor are other settings of the program: each difference is a warning in
// the log, with the value that counts (see [Options].Changed, which may refuse it). A restored state has what was
// saved: the learning rate, the random numbers. Clipping, decay, schedules, policy and data are as the program says.
//
// What a [State] says by its Settings and Versions is compared. Those of a managed.State are the optimizer with each
// of its links, its learning rate, the policy, the seed, the batch size, the data with a checksum of a sample, their
// order, the plugin and the number of devices; then come the versions of Go, lazo and GoMLX. Another model is an error
// of the state. Not compared are the settings of the loop and of its callbacks, as [loop.Until] or a patience, what a
// function of the program does, and settings of one's own: give those that must stay to [Options].Same.
//
// A run that was stopped ([loop.ErrStop], but not [loop.ErrPause]) stays ended: if it is started again, it makes no
// step, and its [loop.Result].Stop says why. It continues if its [loop.Until] is another one.
//
// The state must be a [State]. A run is saved on a schedule ([Every]), in each iteration in which a
// metric is good enough to be kept ([KeepBest], [Options].Keep), and at its end, also if it was cancelled. A checkpoint
// has the state, what has elapsed, and the history: bound a long one by [loop.Thin]. Nothing is saved
// at the end of a run that has failed, or that was cancelled inside of an iteration, as in an evaluation: it is resumed
// from the checkpoint before. The end is marked in the folder for [Follow], unless the run has failed, was cancelled,
// or pauses.
//
// Saves are made in the background ([Async]); an iteration waits for the copy alone. It is made after all other
// callbacks, so what they change is saved with it. The schedule splits blocks of steps where it is due and nowhere
// else. A best checkpoint is never replaced by a newer one that waits. An error of a save ends the run at the next
// step, or block of steps, or at its end; see [Options].Tolerate. A cancelled context does not break a save off,
// but a store that takes more than five minutes then is an error.
//
// A folder with checkpoints of more steps than the run begins with ([Options].At) is refused ([ErrExists]), unless it
// may be overwritten ([Options].Overwrite). They are then removed right before the first checkpoint of the run is
// complete: at each moment the newest checkpoint is the one to resume from.
//
// Several processes that make a run together ([loop.Job]) must see the same folder. Rank 0 chooses the checkpoint
// that all of them restore, says when to save, writes what each of them has whole, and makes a checkpoint complete.
// Each writes its parts of sharded values. An error of one is an error of all.
//
// Several Options of one Resume are joined: lists are appended, and of each other field the last one that is set
// counts. Two options Resume of one run for one folder are an error. A store has no name to open: see [Folder.Resume].
func Resume(dir string, options ...Options) loop.Option {
	return resume(dir, options, func(o Options, job loop.Job) (*Folder, error) {
		// The newest two stay besides what Keep says, unless that says how many: a damaged one leaves another to resume from.
		if !slices.ContainsFunc(o.Keep, func(r Retention) bool { return r.Last != 0 }) {
			o.Keep = append(slices.Clip(o.Keep), Retention{Last: 2})
		}
		return openTogether(dir, o.opening(), job)
	})
}

// Resume is the option [Resume] for a folder that is open, such as one of [OpenStore]. It stays open. Keep and the
// other options of a folder are those that it was opened with. Of several processes, rank 0 opens it to write, and the
// others ReadOnly.
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

// resume is the option for a folder that open gives. The folders of kept stay open.
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
	// The plan of the run has the entry, so that one which nothing logs is found before the first step.
	return loop.Options(prepare, loop.WatchEntry(best, func(context.Context, loop.Report) error { return nil }))
}

// once refuses a folder that an earlier option of the run has.
func once(from loop.Beginning, dir string, kept []*Folder) error {
	for _, option := range from.Prepared {
		if other, ok := option.(*saving); ok && (slices.Contains(kept, other.folder) || sameDir(dir, other.folder.dir)) {
			return &twiceError{dir}
		}
	}
	return nil
}

// sameDir reports whether two names are of one folder that is there.
func sameDir(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

var _ abilities.Resumed = (*saving)(nil)

// OnDifference implements [abilities.Resumed].
func (s *saving) OnDifference(f func(fmt.Stringer)) {
	if s.reporting == nil {
		return
	}
	for _, d := range s.reporting.found {
		f(d)
	}
	s.reporting.watcher = f
}

// Entries implements [abilities.Resumed].
func (s *saving) Entries() (names []string) {
	for _, k := range s.folder.Options().Keep {
		if k.Metric != "" {
			names = append(names, k.Metric)
		}
	}
	return names
}

// Close gives the folder back when the run is over.
func (s *saving) Close() error {
	if s.release != nil {
		s.release()
	}
	switch {
	case !s.closes:
		return nil
	case s.async.writes():
		// A disk or a store that hangs has held the end of the run for long enough.
		go func() { _ = errors.Join(s.async.Close(), s.folder.Close()) }()
		return nil
	}
	return s.folder.close(s.folder.options.LeaveCut)
}

// prepare restores the state and makes the options of the run.
func (s *saving) prepare(ctx context.Context, from loop.Beginning) (loop.Option, error) {
	var err error
	if s.writes() {
		s.release, err = s.folder.reserve()
	}
	if err := together(s.job, "take the folder for this run", err); err != nil {
		return nil, err
	}
	state, ok := loop.StateAs[State](from)
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

// restore puts the checkpoint to resume from into the state. It returns nil if there is none.
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
		s.folder.Options().Log.Info("checkpoint: nothing to resume from, the run begins at its beginning", "folder", s.folder.Dir())
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

// continued are the options of a run that begins at a start.
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
		return nil, fmt.Errorf("checkpoint: the checkpoint of step %d in %s is before step %d, with which the run is to begin: leave that out, the checkpoint says where to continue",
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
			s.folder.Options().Log.Warn("checkpoint: the data cannot begin at a position: the batches before that of the run are read and left out",
				"folder", s.folder.Dir(), "batches", from.Skipped)
		}
		return watch(report.watch), nil
	}
	options = append(options, loop.Continue(at, start.history, stop...),
		loop.Callback{Name: "resume", When: first, Order: 1, AtRank0: true, Start: attend})
	return loop.Options(options...), nil
}

// resumption is where a resumed run continues.
type resumption struct {
	step    Step
	elapsed loop.Elapsed
	// history has the rows up to there.
	history *loop.History
	// differences are those that are known before the first step.
	differences []Difference
	ended       *ended
	settings    map[string]string // that were saved
	stated      map[string]string // that the program had when they were first known
}

// restore puts a checkpoint of a run into a state, and reads the values of also. If same is not nil, the saved settings
// must be equal to it. After an error the state is as it was.
func (f *Folder) restore(ctx context.Context, state State, c *Checkpoint, also map[string]any, same any) (*resumption, error) {
	start, err := f.startOf(c, state)
	if err == nil && same != nil {
		err = f.compare(start, c, same)
	}
	for _, name := range slices.Sorted(maps.Keys(also)) {
		if err == nil {
			err = c.Section(name, also[name])
		}
	}
	if err == nil {
		err = state.Restore(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: resume from step %d in %s: %w", c.Step, f.Dir(), err)
	}
	return start, nil
}

// startOf reads the loop's part of a checkpoint, and takes its tensor away.
func (f *Folder) startOf(c *Checkpoint, state State) (*resumption, error) {
	var p position
	switch err := c.Section(loopSection, &p); {
	case errors.Is(err, ErrNoSection):
		return nil, fmt.Errorf("it was not saved by a run, so its position is not known: %w %q; Folder.Load and the state's Restore take it nevertheless",
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
