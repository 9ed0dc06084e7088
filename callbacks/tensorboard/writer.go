package tensorboard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/lazo-ml/lazo/internal/tfrecord"
	"github.com/lazo-ml/lazo/loop"
)

// ErrDropped means that the run was too fast ([callbacks.Background]): write less often or set a longer queue.
var ErrDropped = errors.New("reports were dropped")

// Write writes the logs of due iterations into event files in dir. Events have the number of finished steps and the
// iteration's time.
//
// Values are read and written in the background ([InBackground]).
//
// A run that finds event files makes TensorBoard drop all steps after its first ([loop.Continue]), or all if it
// begins at 0.
//
// Errors are as in [callbacks.JSONL], and [ErrDropped] unless [callbacks.Background.Dropped] is set. Wrong options
// are an error before the first step.
func Write(dir string, when loop.Schedule, options ...Option) loop.Callback {
	s := newSettings(options)
	c := loop.Callback{Name: "tensorboard " + dir, When: when, AtRank0: true, Err: newWriter(dir, s).err}
	c.Start = func(from loop.Beginning) (loop.Attendant, error) {
		w := newWriter(dir, s)
		if w.err != nil {
			return nil, w.err
		}
		b, queued := s.background, &inBackground{}
		if b.Dropped == nil {
			b.Dropped = func(_ string, reports int64) { queued.dropped = reports }
		}
		var err error
		queued.Attendant, err = b.Of(loop.Callback{Name: c.Name, When: when, Start: func(loop.Beginning) (loop.Attendant, error) {
			return w, nil
		}}).Start(from)
		return queued, err
	}
	return c
}

type inBackground struct {
	loop.Attendant
	dropped int64
}

func (b *inBackground) End(ctx context.Context, e loop.Ending) error {
	err := b.Attendant.End(ctx, e)
	if b.dropped > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d, write less often or set a longer queue", ErrDropped, b.dropped))
	}
	return err
}

// New returns the writer of [Write] for a hand-written loop, without a background. Watch writes a report, End closes
// the files.
func New(dir string, options ...Option) loop.Attendant {
	w := newWriter(dir, newSettings(options))
	w.prefix = "tensorboard: "
	return w
}

type writer struct {
	settings
	dir    string
	hyper  map[string]message
	begun  bool
	files  map[string]*eventFile // by folder
	events map[string]message    // by folder
	order  []string
	first  error
	ended  bool
	prefix string
	owners map[string]loop.Collection // of the tags metrics/…, by folder and tag
}

func newWriter(dir string, s settings) *writer {
	w := &writer{settings: s, dir: dir, files: map[string]*eventFile{}, events: map[string]message{}, owners: map[string]loop.Collection{}}
	var err error
	if w.hyper, err = flatten(s.parameters); err != nil {
		w.err = errors.Join(w.err, err)
	}
	if dir == "" {
		w.err = errors.Join(w.err, errors.New("want a folder, got no name"))
	}
	return w
}

// Watch writes a report. It returns only errors of the options, End others.
func (w *writer) Watch(_ context.Context, r loop.Report) error {
	if w.err != nil {
		return w.prefixed(w.err)
	}
	if w.ended {
		return nil
	}
	seconds := secondsAt(r.Elapsed)
	if !w.begun {
		w.begun = true
		w.begin(r, seconds)
	}
	w.own(r)
	for e := range r.Logs.All() {
		folder, tag := w.folderAndTag(e)
		if e.Collection == loop.Stateful && w.owners[folder+"\n"+metric(tag)] == loop.Stateful {
			tag = metric(tag)
		} else if w.owners[folder+"\n"+tag] == loop.Stateful {
			w.note(fmt.Errorf("step %d: %s: the tag %s already has the values of %s.%s: log this entry from the first turn on, or under another name",
				r.Elapsed.Steps, e.Path(), tag, loop.Stateful, e.Name))
			continue
		}
		v, err := encode(tag, e)
		if err != nil {
			w.note(fmt.Errorf("step %d: %s: %w", r.Elapsed.Steps, e.Path(), err))
		}
		if v != nil {
			w.add(folder, v)
		}
	}
	w.flush(r, seconds)
	return nil
}

// begin hides old steps also in folders that this run does not use.
func (w *writer) begin(r loop.Report, seconds float64) {
	for _, folder := range append([]string{training}, w.evaluations...) {
		if _, some, err := newestFile(filepath.Join(w.dir, folder)); err == nil && some {
			_ = w.file(folder, r).open(seconds) // else with its first event
		}
	}
	if w.parameters != nil {
		w.add(".", sessionStart(w.hyper, seconds))
	}
}

// own: metrics/… are the first [loop.Metrics], else the first [loop.Stateful].
func (w *writer) own(r loop.Report) {
	for _, c := range []loop.Collection{loop.Metrics, loop.Stateful} {
		for e := range r.Logs.All() {
			if e.Collection != c {
				continue
			}
			folder, tag := w.folderAndTag(e)
			if of := folder + "\n" + metric(tag); w.owners[of] == "" {
				w.owners[of] = c
			}
		}
	}
}

func (w *writer) add(folder string, v message) {
	if w.events[folder] == nil {
		w.order = append(w.order, folder)
	}
	w.events[folder] = w.events[folder].bytes(1, v)
}

func (w *writer) flush(r loop.Report, seconds float64) {
	for _, folder := range w.order {
		record := tfrecord.Append(nil, eventOf(seconds, r.Elapsed.Steps, summary, w.events[folder]))
		w.file(folder, r).add(event{r.Elapsed.Steps, seconds, record, folder != "." && isResumedAt(r)})
	}
	w.order = w.order[:0]
	clear(w.events)
}

func isResumedAt(r loop.Report) bool { return r.From.Steps > 0 && r.Elapsed.Steps <= r.From.Steps }

func (w *writer) file(folder string, r loop.Report) *eventFile {
	f := w.files[folder]
	if f == nil {
		purge := int64(0)
		if r.From.Steps > 0 {
			purge = r.From.Steps + 1
		}
		f = w.newFile(filepath.Join(w.dir, folder), purge)
		w.files[folder] = f
	}
	return f
}

// End closes the files and returns the first error.
func (w *writer) End(_ context.Context, e loop.Ending) error {
	if w.begun && !w.ended && w.parameters != nil {
		seconds := secondsAt(e.Elapsed)
		w.add(".", sessionEnd(e.Err == nil, seconds))
		w.flush(e.Report, seconds)
	}
	for _, f := range w.files {
		_ = f.backlog.Retry(f.write) // Err has its error
		w.note(f.backlog.Err())
		w.note(f.close())
	}
	clear(w.files)
	w.ended = true
	return w.prefixed(w.first)
}

func (w *writer) note(err error) {
	if w.first == nil {
		w.first = err
	}
}

func (w *writer) prefixed(err error) error {
	if err == nil || w.prefix == "" {
		return err
	}
	return fmt.Errorf("%s%w", w.prefix, err)
}

func secondsAt(e loop.Elapsed) float64 {
	if e.Date == 0 {
		return secondsOf(time.Now())
	}
	return secondsOf(e.Date.Time())
}
