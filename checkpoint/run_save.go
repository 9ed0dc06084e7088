package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/shares"
	"github.com/lazo-ml/lazo/loop"
)

type newerError struct {
	dir          string
	newest, from int64
}

func (e *newerError) Error() string {
	return fmt.Sprintf("checkpoint: save into %s: the folder has checkpoints of more steps than the run begins with: %d, and the run begins with %d: "+
		"resume from the newest, or use another folder; with Overwrite the first save removes them", e.dir, e.newest, e.from)
}

func (e *newerError) Is(err error) bool { return err == fs.ErrExist }

type saving struct {
	loop.Option
	Options
	folder    *Folder
	closes    bool
	release   func()
	async     *Async
	history   rows
	resumed   *resumption
	over      bool // the resumed run was stopped: make no step
	begun     bool
	list      []Info
	failures  int
	best      bool // the newest must not be replaced
	final     bool // the newest has the effects of what ran at the end
	err       error
	job       loop.Job
	shared    bool
	gone      int
	reporting *reporting
	told      int
	asked     atomic.Bool // for a save outside the schedule
}

func (s *saving) options() []loop.Option {
	attend := func(a loop.Attendant) func(loop.Beginning) (loop.Attendant, error) {
		return func(loop.Beginning) (loop.Attendant, error) { return a, nil }
	}
	all, best := loop.Attendant(s), attend(watch(s.saveBest))
	if !s.writes() {
		all, best = sharing{s}, attend(watch(s.saveShare))
	}
	options := []loop.Option{
		// A run too short for the schedule is still saved.
		loop.Callback{When: s.When.AndAtEnd(), Order: 1, Start: attend(all)},
		loop.Callback{When: loop.AtStart, Order: 1, AtRank0: true, Start: attend(watch(s.begin))},
		loop.Callback{Name: "a save has failed", Order: 1, Start: attend(failures{watch(s.check), s.async})},
	}
	for _, entry := range s.metricNames() {
		options = append(options, loop.Callback{Entry: entry, Order: 1, Start: best})
	}
	return options
}

func (s *saving) rules() []Retention {
	keep := s.folder.Options().Keep
	if s.Best != "" {
		keep = append(keep, s.bestRule())
	}
	return keep
}

func (s *saving) metricNames() (names []string) {
	for _, k := range s.rules() {
		if name := k.Metric; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (s *saving) Watch(ctx context.Context, r loop.Report) error {
	s.asked.Store(false)
	return s.saveIf(ctx, r, true)
}

var _ abilities.Saver = (*saving)(nil)

func (s *saving) SaveNow() { s.asked.Store(true) }

func (s *saving) Interrupts() bool { return s.asked.Load() }

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

type watch func(context.Context, loop.Report) error

func (w watch) Watch(ctx context.Context, r loop.Report) error { return w(ctx, r) }
func (watch) End(context.Context, loop.Ending) error           { return nil }

// savePatience limits saves after a cancellation: a store can hang.
const savePatience = 5 * time.Minute

var errPatience = fmt.Errorf("the run was cancelled, and the store has not finished the save %s later", savePatience)

const markPatience = 10 * time.Second

// lasting outlives the run's context: a cancelled run must be saved.
func lasting(ctx context.Context) (own context.Context, done func()) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		late := time.NewTimer(savePatience)
		defer late.Stop()
		select {
		case <-late.C:
			cancel(errPatience)
		case <-own.Done():
		}
	})
	return own, func() { forget(); cancel(nil) }
}

func (s *saving) begin(ctx context.Context, r loop.Report) error {
	if s.begun || s.err != nil {
		return s.err
	}
	list, err := s.folder.List(ctx)
	if err != nil {
		return err
	}
	ahead := func(i Info) bool {
		return int64(i.Step) > r.From.Steps && (i.Err == nil || errors.Is(i.Err, ErrNewer))
	}
	for i := range list { // skipped checkpoints must not block the run
		if x := &list[i]; x.Err == nil && int64(x.Step) > r.From.Steps {
			x.Err = s.folder.Verify(ctx, x.Step)
		}
	}
	var newer []Step
	for _, i := range list {
		if ahead(i) {
			newer = append(newer, i.Step)
		}
	}
	if n := len(newer); n > 0 && !s.folder.Options().Overwrite {
		s.err = &newerError{s.folder.Dir(), int64(newer[n-1]), r.From.Steps}
		return s.err
	}
	list = slices.DeleteFunc(list, func(i Info) bool { return i.Err != nil || ahead(i) })
	s.list, s.begun = list, true
	s.async.supersede(newer)
	return s.folder.unmarkEnd(ctx)
}

func (s *saving) metrics(r loop.Report) (map[string]float64, error) {
	found := map[string]float64{}
	for _, entry := range s.metricNames() {
		x, err := r.Logs.Float(entry)
		switch {
		case errors.Is(err, loop.ErrNoEntry):
		case err != nil:
			return nil, err
		default:
			found[entry] = x
		}
	}
	return found, nil
}

func (s *saving) worth(r loop.Report, metrics map[string]float64) bool {
	list := append(s.others(r), Info{Step: Step(r.Elapsed.Steps), Metrics: metrics})
	for _, k := range s.rules() {
		if x, ok := metrics[k.Metric]; !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if k.best().Kept(list)[len(list)-1] {
			return true
		}
	}
	return false
}

func (s *saving) others(r loop.Report) []Info {
	return slices.DeleteFunc(slices.Clone(s.list), func(i Info) bool { return int64(i.Step) == r.Elapsed.Steps })
}

func (s *saving) save(ctx context.Context, r loop.Report, metrics map[string]float64, leftOut bool, err error) error {
	defer busy(s.job)()
	due, again := false, s.outdated(r)
	if again {
		metrics = s.merged(r, metrics)
	}
	if !leftOut && err == nil {
		due, err = s.ready(ctx, r, metrics, again)
	}
	var content Content
	step := Step(r.Elapsed.Steps)
	if due {
		content, err = s.content(ctx, r, metrics)
	}
	if due && again {
		s.folder.replace(step)
	}
	var began error
	if due && err == nil && content.Sharded() && s.job == nil {
		err = errors.Join(errors.New("checkpoint: the state has a value that is sharded over several processes, and no Job of these: see loop.Job"), discard(content))
	}
	if due && err == nil && content.Sharded() {
		s.shared = true
		if content.Share.At, began = s.folder.Begin(ctx, step); began != nil {
			due, began = false, errors.Join(began, discard(content))
		}
	}
	due, _, err = s.agreedSave(due, content.Share.At, err)
	if err != nil || !due {
		return errors.Join(err, s.failed(began))
	}
	s.list, s.best = append(s.others(r), Info{Step: step, Metrics: metrics}), s.worth(r, metrics)
	s.final, _ = r.RanAtEnd()
	return s.failed(s.async.Save(ctx, step, content))
}

func (s *saving) ready(ctx context.Context, r loop.Report, metrics map[string]float64, again bool) (bool, error) {
	if _, has := s.saved(r); has && !again {
		s.best = s.best || s.worth(r, metrics)
		return false, nil
	}
	if r.Ahead > 0 && len(s.Also) > 0 {
		todo := "if the run counts in epochs, count in steps or give the batches the method InEpoch; if a step failed or stopped, " +
			"resume from an earlier checkpoint"
		if r.Elapsed.Steps == r.From.Steps {
			todo = "the start of a run has its first batch: save first after a step, so do not watch an entry that is logged at the start (AndAtStart)"
		}
		return false, s.failed(fmt.Errorf("checkpoint: save step %d into %s: not saved, since %d of the batches taken from the data "+
			"is not trained, so section %q of the option Also does not belong to this step: %s",
			r.Elapsed.Steps, s.folder.Dir(), r.Ahead, slices.Sorted(maps.Keys(s.Also))[0], todo))
	}
	if s.best || s.shared && s.async.writing() && s.worth(r, metrics) { // finish the best one first
		if err := s.failed(s.async.Wait(ctx)); err != nil {
			return false, err
		}
	}
	if s.shared && s.async.writing() {
		// Replacing the waiting one would need another agreement.
		s.folder.Options().Log.Debug("checkpoint: not saved, since an older one is still being written",
			"folder", s.folder.Dir(), "step", r.Elapsed.Steps)
		return false, nil
	}
	return true, nil
}

func (s *saving) saved(r loop.Report) (Info, bool) {
	i := slices.IndexFunc(s.list, func(i Info) bool { return int64(i.Step) == r.Elapsed.Steps })
	if i < 0 {
		return Info{}, false
	}
	return s.list[i], true
}

// outdated reports whether the step is saved without the effects of the run's end. A changed state does not replace a
// best checkpoint, whose metric is another state's.
func (s *saving) outdated(r loop.Report) bool {
	ran, changed := r.RanAtEnd()
	was, has := s.saved(r)
	return ran && !s.final && has && !(changed && s.worth(r, was.Metrics))
}

func (s *saving) merged(r loop.Report, metrics map[string]float64) map[string]float64 {
	all := map[string]float64{}
	if _, changed := r.RanAtEnd(); !changed {
		was, _ := s.saved(r)
		maps.Copy(all, was.Metrics)
	}
	maps.Copy(all, metrics)
	return all
}

func (s *saving) End(ctx context.Context, e loop.Ending) error {
	defer busy(s.job)()
	if e.Reason == loop.Cancelled {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, savePatience, errPatience)
		defer done()
	}
	whole := !e.Partial && e.Reason != loop.Failed && e.Elapsed.Steps > e.From.Steps
	var err error
	if e.Reason == loop.Failed {
		s.async.lastCall()
	} else {
		err = s.written()
	}
	if look := s.err == nil && (s.begun || whole); look {
		begun := s.begin(ctx, e.Report)
		if begun == nil {
			begun = s.failed(s.async.Wait(ctx)) // a failed one is tried again
		}
		err = errors.Join(err, begun)
	}
	begun := s.begun && s.err == nil
	if begun {
		s.Tolerate = 0
	}
	if e.Reason != loop.Failed { // after a failure, ranks may be at different steps
		var metrics map[string]float64
		var lastErr error
		if begun && whole {
			metrics, lastErr = s.metrics(e.Report)
		}
		err = errors.Join(err, s.save(ctx, e.Report, metrics, !begun || !whole, lastErr), s.written())
	}
	if begun {
		err = errors.Join(err, s.failed(s.async.Wait(ctx)))
	}
	if err == nil && e.Normal() && !errors.Is(e.Stop, loop.ErrPause) && !s.over {
		err = s.folder.markEnd(ctx, e)
	} else if begun && !s.over {
		s.markBroken(ctx, e, err)
	}
	return err
}

// markBroken's errors are not the run's: only readers of [Folder.Run] use the mark.
func (s *saving) markBroken(ctx context.Context, e loop.Ending, err error) {
	if e.Err = cmp.Or(e.Err, err); err != nil {
		e.Reason = loop.Failed
	}
	ctx, done := context.WithTimeout(ctx, markPatience)
	defer done()
	if err := s.folder.markBroken(ctx, e); err != nil {
		s.folder.Options().Log.Warn("checkpoint: why the run ended is not in the folder", "folder", s.folder.Dir(), "error", err)
	}
}

type sharing struct{ *saving }

func (s sharing) Watch(ctx context.Context, r loop.Report) error {
	s.asked.Store(false)
	return s.saveShare(ctx, r)
}

func (s *saving) saveShare(ctx context.Context, r loop.Report) error {
	ctx, done := lasting(ctx)
	defer done()
	early := s.failed(s.async.Check())
	due, at, err := s.agreedSave(false, shares.Slot{}, nil)
	if err = errors.Join(early, err); err != nil || !due || at == (shares.Slot{}) { // nothing is sharded
		return err
	}
	defer busy(s.job)()
	step := Step(r.Elapsed.Steps)
	state, ok := abilities.StateAs[State](r)
	if !ok {
		err = fmt.Errorf("checkpoint: a state of type %T cannot be saved: give it the method Content of State", r.State())
	}
	var content Content
	if err == nil {
		if content, err = state.Content(ctx); err != nil {
			err = fmt.Errorf("checkpoint: the state: %w", err)
		}
	}
	if err != nil {
		return errors.Join(err, s.folder.GiveUp(ctx, step, shares.Share{Rank: s.job.Rank(), Of: s.job.Size(), At: at}, err))
	}
	content.Share.At = at
	return s.failed(s.async.Save(ctx, step, content))
}

func (s sharing) End(ctx context.Context, e loop.Ending) error {
	err := s.finished(ctx)
	if e.Reason == loop.Failed { // ranks may be at different steps
		return err
	}
	err = errors.Join(err, s.written())
	s.Tolerate = 0
	return errors.Join(err, s.saveShare(ctx, e.Report), s.finished(ctx), s.written())
}

func (s sharing) finished(ctx context.Context) error {
	defer busy(s.job)()
	return s.failed(s.async.Wait(ctx))
}
