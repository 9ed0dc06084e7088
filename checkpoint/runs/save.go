package runs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// Save is an option of a loop: it saves the run's state into a folder on a schedule, in each turn in which a metric of
// the folder's [checkpoint.Options].Keep ([checkpoint.Lowest], [checkpoint.Highest]) is good enough to be kept, and at
// the end of the run, also of one that was interrupted. What is saved is all that [Resume] needs: the state, what
// elapsed, the whole history. The state must be a [checkpoint.State]; any other is an error in the first turn that
// saves.
//
// Saves are made in the background ([checkpoint.Async]); a turn waits for the copy alone. One that a best metric asked
// for is never replaced by a newer one. An error of a save ends the run at the next border of a step, or of a block of
// steps, or at its end; see [Tolerate].
//
// It looks behind all other callbacks, so that what they do in a turn is saved with it. The schedule breaks up blocks
// of steps where it is due and nowhere else; a metric that each step logs is looked at after each step.
//
// A cancelled context does not break a save off: what is due in the turn is saved, and so is the last step; a store
// that takes more than five minutes then is an error. At the end nothing is saved if the run has failed, or was
// cancelled inside of a turn (as in an evaluation): a run that goes on from there would miss the rest of the turn. The
// checkpoint before it is the place to go on from.
//
// Each save writes the history: bound a long one by [loop.Limit] or [loop.Thin]. What is no number in it is not saved.
//
// A folder with checkpoints that are newer than where the run begins is refused before the first step
// ([ErrNewerSteps]), unless it may [checkpoint.Options].Overwrite. Then they stay until the run's first checkpoint is
// written: right before that one is given its name they are removed. So whatever comes between, the newest is never
// another run's once this run has saved; damaged ones stay.
//
// Where several processes make the run together ([loop.Joined]), the one of rank 0 decides, writes what each of them
// has whole, and makes a checkpoint complete; of values that are cut each writes the parts that it holds
// ([checkpoint.Share]). [Open] opens the folder so. What fails in one of them ends the run in all. A save that is due
// while one of such values is still being written is left out, or waits for it where a best metric asks for it.
func Save(folder *checkpoint.Folder, when loop.Schedule, options ...SaveOption) loop.Option {
	if folder == nil {
		return loop.Callback{Name: "save", When: when, Err: errNoFolder}
	}
	return loop.EachRun(func() loop.Option {
		s := &saving{folder: folder, async: checkpoint.NewAsync(folder)}
		for _, o := range options {
			if o != nil {
				o(s)
			}
		}
		started := func(a loop.Attendant) func(loop.Beginning) (loop.Attendant, error) {
			return func(loop.Beginning) (loop.Attendant, error) { return a, nil }
		}
		best := func(from loop.Beginning) (loop.Attendant, error) {
			if from.Job != nil && from.Job.Rank() > 0 {
				return watch(s.saveShare), nil
			}
			return watch(s.saveBest), nil
		}
		all := []loop.Option{
			// At the end it saves anyway, so a schedule that a short run never comes to is no mistake.
			loop.Callback{When: when.AndAtEnd(), Place: loop.AfterAll, Start: s.start},
			loop.Callback{When: loop.AtStart, Place: loop.AfterAll, AtRank0: true, Start: started(watch(s.begin))},
			loop.Callback{Name: "a save has failed", Place: loop.AfterAll, Start: started(failures{watch(s.check), s.async})},
		}
		for _, entry := range metrics(folder) {
			all = append(all, loop.Callback{Entry: entry, Place: loop.AfterAll, Start: best})
		}
		return loop.Options(all...)
	})
}

// metrics are the names that the folder's retention goes by.
func metrics(folder *checkpoint.Folder) []string {
	var names []string
	for _, k := range folder.Options().Keep {
		if name := k.Metric(); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// SaveOption is a setting of [Save].
type SaveOption func(*saving)

// Tolerate lets a run go on after so many failed saves in all: each is logged, and the next one is tried when it is
// due. Without it the first ends the run. The last save of a run is not among them.
func Tolerate(n int) SaveOption { return func(s *saving) { s.tolerate = n } }

// Also saves something else as a section of that name, such as the place in data that [data.Skip] cannot find again. It
// is read back by [Start.Section]. A place that the data itself counts must count a batch before it hands it out; then
// it is that of the step that is saved, and a step that would have another one ([loop.Report].Ahead) is not saved.
//
// [data.Skip]: https://pkg.go.dev/github.com/lazo-ml/lazo/data#Skip
func Also(name string, value func() (any, error)) SaveOption {
	return func(s *saving) { s.also = append(s.also, extra{name, value}) }
}

var errNoFolder = errors.New("no folder given")

// ErrNewerSteps: a run begins before the newest checkpoint of the folder that it is to save into.
var ErrNewerSteps = errors.New("the folder has checkpoints of more steps than the run begins with")

type extra struct {
	name  string
	value func() (any, error)
}

// saving is [Save] in one run.
type saving struct {
	folder   *checkpoint.Folder
	release  func() // gives the folder back
	async    *checkpoint.Async
	tolerate int
	also     []extra
	history  rows
	begun    bool              // it has looked into the folder
	list     []checkpoint.Info // what is good in the folder, as it will be when all is written
	failures int               // saves that failed
	best     bool              // the newest must not be replaced
	err      error             // why nothing can be saved
	job      loop.Job          // of the run, nil where this process is alone
	shared   bool              // a save was made by several processes: a value is cut
	gone     int               // how many shares found no place to go to
	told     int               // how many of these and of the failures rank 0 knows
}

func (s *saving) start(from loop.Beginning) (_ loop.Attendant, err error) {
	if s.job = from.Job; s.job != nil && s.job.Rank() > 0 {
		return sharing{s}, nil
	}
	if s.release, err = s.folder.Reserve(); err != nil {
		return nil, err
	}
	return s, nil
}

// Watch saves.
func (s *saving) Watch(ctx context.Context, r loop.Report) error { return s.saveIf(ctx, r, true) }

// saveBest saves if the turn's metrics are worth it.
func (s *saving) saveBest(ctx context.Context, r loop.Report) error { return s.saveIf(ctx, r, false) }

func (s *saving) saveIf(ctx context.Context, r loop.Report, anyway bool) error {
	ctx, done := lasting(ctx)
	defer done()
	err := s.begin(ctx, r)
	var metrics map[string]float64
	if err == nil {
		metrics, err = s.metrics(r)
	}
	return s.save(ctx, r, metrics, err != nil || !anyway && !s.worth(r, metrics), err)
}

// watch is an attendant that does nothing at the end, which is for saving.
type watch func(context.Context, loop.Report) error

func (w watch) Watch(ctx context.Context, r loop.Report) error { return w(ctx, r) }
func (watch) End(context.Context, loop.Ending) error           { return nil }

// patience bounds what the saves of a run that was cancelled may take, because a store can hang. It is long because a
// large state on a slow disk takes long, and a second Ctrl-C ends the process in any case.
const patience = 5 * time.Minute

var errPatience = fmt.Errorf("the run was cancelled, and the store has not taken it %s later", patience)

// lasting is the context of a save. The run's would break it off when it is cancelled, which is when it is wanted most.
func lasting(ctx context.Context) (own context.Context, done func()) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-late.C:
			cancel(errPatience)
		case <-own.Done():
		}
	})
	return own, func() { forget(); cancel(nil) }
}

// begin looks into the folder, once.
func (s *saving) begin(ctx context.Context, r loop.Report) error {
	if s.begun || s.err != nil {
		return s.err
	}
	list, err := s.folder.List(ctx)
	if err != nil {
		return err
	}
	ahead := func(i checkpoint.Info) bool {
		return int64(i.Step) > r.From.Steps && (i.Err == nil || errors.Is(i.Err, checkpoint.ErrNewer))
	}
	for i := range list { // what Resume has passed over must not be in the way of the run that goes on
		if x := &list[i]; x.Err == nil && int64(x.Step) > r.From.Steps {
			x.Err = s.folder.Verify(ctx, x.Step)
		}
	}
	var newer []checkpoint.Step
	for _, i := range list {
		if ahead(i) {
			newer = append(newer, i.Step)
		}
	}
	if n := len(newer); n > 0 && !s.folder.Options().Overwrite {
		s.err = fmt.Errorf("checkpoint: save into %s: %w: %d, and the run begins with %d: go on from there with Resume, "+
			"or take another folder; with Overwrite its first save removes them", s.folder.Dir(), ErrNewerSteps, newer[n-1], r.From.Steps)
		return s.err
	}
	list = slices.DeleteFunc(list, func(i checkpoint.Info) bool { return i.Err != nil || ahead(i) })
	s.list, s.begun = list, true
	s.async.Supersede(newer)
	return nil
}

// metrics are those of the turn that the folder goes by.
func (s *saving) metrics(r loop.Report) (map[string]float64, error) {
	found := map[string]float64{}
	for _, entry := range metrics(s.folder) {
		x, err := r.Logs.Float(entry)
		switch {
		case errors.Is(err, loop.ErrNoEntry): // in another turn
		case err != nil:
			return nil, err
		default:
			found[entry] = x
		}
	}
	return found, nil
}

// worth tells whether the folder would keep a checkpoint of the turn for one of its metrics.
func (s *saving) worth(r loop.Report, metrics map[string]float64) bool {
	list := append(s.others(r), checkpoint.Info{Step: checkpoint.Step(r.Elapsed.Steps), Metrics: metrics})
	for _, k := range s.folder.Options().Keep {
		if x, ok := metrics[k.Metric()]; !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if k.Kept(list)[len(list)-1] {
			return true
		}
	}
	return false
}

// others are the checkpoints but that of the turn.
func (s *saving) others(r loop.Report) []checkpoint.Info {
	return slices.DeleteFunc(slices.Clone(s.list), func(i checkpoint.Info) bool { return int64(i.Step) == r.Elapsed.Steps })
}

// save saves a turn, unless it is to be left out. The processes decide it together, in each call once; err is what
// hinders it.
func (s *saving) save(ctx context.Context, r loop.Report, metrics map[string]float64, leftOut bool, err error) error {
	defer busy(s.job)()
	make := false
	if !leftOut && err == nil {
		make, err = s.ready(ctx, r, metrics)
	}
	var content checkpoint.Content
	step := checkpoint.Step(r.Elapsed.Steps)
	if make {
		content, err = s.content(ctx, r, metrics)
	}
	var began error
	if make && err == nil && content.Cut() && s.job == nil {
		err = errors.Join(errors.New("checkpoint: the state has a value that is cut over several processes, and no Job of these: see loop.Joined"), discard(content))
	}
	if make && err == nil && content.Cut() {
		s.shared = true
		if content.Share.At, began = s.folder.Begin(ctx, step); began != nil {
			make, began = false, errors.Join(began, discard(content))
		}
	}
	make, _, err = s.agreedSave(make, content.Share.At, err)
	if err != nil || !make {
		return errors.Join(err, s.failed(began))
	}
	s.list, s.best = append(s.others(r), checkpoint.Info{Step: step, Metrics: metrics}), s.worth(r, metrics)
	return s.failed(s.async.Save(ctx, step, content))
}

// ready tells whether a turn can be saved and is not yet.
func (s *saving) ready(ctx context.Context, r loop.Report, metrics map[string]float64) (bool, error) {
	if s.has(r.Elapsed.Steps) {
		s.best = s.best || s.worth(r, metrics)
		return false, nil
	}
	if r.Ahead > 0 && len(s.also) > 0 {
		return false, s.failed(fmt.Errorf("checkpoint: save step %d into %s: not saved, since %d of the batches taken from the data "+
			"is not trained, and so section %q is not of this step: go on from an earlier checkpoint",
			r.Elapsed.Steps, s.folder.Dir(), r.Ahead, s.also[0].name))
	}
	if s.best || s.shared && s.async.Writing() && s.worth(r, metrics) { // it is written, or being written, when nothing waits
		if err := s.failed(s.async.Wait(ctx)); err != nil {
			return false, err
		}
	}
	if s.shared && s.async.Writing() {
		// The processes would have to agree which one takes the place of which.
		s.folder.Options().Log.Debug("checkpoint: not saved, since an older one is still being written",
			"folder", s.folder.Dir(), "step", r.Elapsed.Steps)
		return false, nil
	}
	return true, nil
}

// has tells whether a step was given to be saved in this run, or is that which the run began with.
func (s *saving) has(step int64) bool {
	return slices.ContainsFunc(s.list, func(i checkpoint.Info) bool { return int64(i.Step) == step })
}

// End saves the last state and waits until all is on the disk.
func (s *saving) End(ctx context.Context, e loop.Ending) error {
	defer s.release()
	defer busy(s.job)()
	if e.Reason == loop.Cancelled {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, patience, errPatience)
		defer done()
	}
	whole := !e.Partial && e.Reason != loop.Failed && e.Elapsed.Steps > e.From.Steps
	var err error
	if e.Reason == loop.Failed {
		s.async.LastCall()
	} else {
		err = s.written()
	}
	if look := s.err == nil && (s.begun || whole); look {
		begun := s.begin(ctx, e.Report)
		if begun == nil {
			begun = s.failed(s.async.Wait(ctx)) // one that failed is tried again
		}
		err = errors.Join(err, begun)
	}
	begun := s.begun && s.err == nil
	if begun {
		s.tolerate = 0
	}
	if e.Reason != loop.Failed { // or some process may not have come so far
		var metrics map[string]float64
		var lastErr error
		if begun && whole {
			metrics, lastErr = s.metrics(e.Report)
		}
		err = errors.Join(err, s.save(ctx, e.Report, metrics, !begun || !whole, lastErr), s.written())
	}
	if !begun {
		return err
	}
	return errors.Join(err, s.failed(s.async.Wait(ctx)))
}

// sharing is [Save] in the processes but that of rank 0, which decides.
type sharing struct{ *saving }

// Watch saves the parts of this process if rank 0 saves in this turn.
func (s sharing) Watch(ctx context.Context, r loop.Report) error { return s.saveShare(ctx, r) }

func (s *saving) saveShare(ctx context.Context, r loop.Report) error {
	ctx, done := lasting(ctx)
	defer done()
	early := s.failed(s.async.Check())
	make, at, err := s.agreedSave(false, checkpoint.Slot{}, nil)
	if err = errors.Join(early, err); err != nil || !make || at == (checkpoint.Slot{}) { // nothing is cut
		return err
	}
	defer busy(s.job)()
	step := checkpoint.Step(r.Elapsed.Steps)
	state, ok := r.State().(checkpoint.State)
	if !ok {
		err = fmt.Errorf("checkpoint: a state of type %T cannot be saved: give it the method Content of checkpoint.State", r.State())
	}
	var content checkpoint.Content
	if err == nil {
		if content, err = state.Content(ctx); err != nil {
			err = fmt.Errorf("checkpoint: the state: %w", err)
		}
	}
	if err != nil { // rank 0 is to wait no longer
		return errors.Join(err, s.folder.GiveUp(ctx, step, checkpoint.Share{Rank: s.job.Rank(), Of: s.job.Size(), At: at}, err))
	}
	content.Share.At = at
	return s.failed(s.async.Save(ctx, step, content))
}

// End writes what is to be saved at the end, and waits for all that this process writes.
func (s sharing) End(ctx context.Context, e loop.Ending) error {
	err := s.finished(ctx)
	if e.Reason == loop.Failed { // then rank 0 saves nothing, and not all processes may have come so far
		return err
	}
	err = errors.Join(err, s.written())
	s.tolerate = 0
	return errors.Join(err, s.saveShare(ctx, e.Report), s.finished(ctx), s.written())
}

// finished waits for what this process writes.
func (s sharing) finished(ctx context.Context) error {
	defer busy(s.job)()
	return s.failed(s.async.Wait(ctx))
}
