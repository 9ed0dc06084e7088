package checkpoint

import (
	"context"
	"errors"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// saveFailed is due where a save of the run has failed in the background. Schedules should be functions of the time alone; this
// one is not, because nothing else can ask after each step without breaking up the blocks of steps.
func (f *Folder) saveFailed() loop.Schedule {
	return loop.When("a save has failed", func(_, _ loop.Elapsed) bool {
		a := f.saver.Load()
		return a != nil && a.failing.Load()
	})
}

// failedOnly hears of saves that failed in the background.
type failedOnly struct{ *saving }

// Watch ends the run, or does not.
func (f *failedOnly) Watch(context.Context, loop.Report) error {
	if f.async == nil {
		return nil
	}
	return f.heed(f.async.Check())
}

// End is that of the other one.
func (f *failedOnly) End(context.Context, loop.Ending) error { return nil }

// heed decides what an error of a save comes to.
func (s *saving) heed(err error) error {
	if err == nil {
		return nil
	}
	var failed []error
	for _, e := range parts(err) {
		if b := (*BackgroundError)(nil); errors.As(e, &b) && errors.Is(e, ErrNotPruned) {
			s.folder.log.Warn("checkpoint: saved, but old ones could not be removed", "folder", s.folder.dir, "step", int64(b.Step), "error", b.Err)
			continue
		} else if b != nil { // it is not in the folder, so it may be tried again
			s.list = slices.DeleteFunc(s.list, func(i Info) bool { return i.Step == b.Step })
		}
		failed = append(failed, e)
	}
	if len(failed) == 0 {
		return nil
	}
	err = errors.Join(failed...)
	if s.failures += len(failed); s.failures <= s.tolerate {
		s.folder.log.Warn("checkpoint: not saved; the run goes on", "folder", s.folder.dir, "failed", s.failures, "tolerated", s.tolerate, "error", err)
		return nil
	}
	return err
}

// parts are the errors that were joined.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, parts(e)...)
		}
		return all
	}
	return []error{err}
}
