package checkpoint

import (
	"context"
	"errors"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

type failures struct {
	watch
	async *Async
}

func (f failures) Interrupts() bool { return f.async.hasFailed() }

func (s *saving) check(context.Context, loop.Report) error { return s.failed(s.async.Check()) }

func (s *saving) failed(err error) error {
	if err == nil {
		return nil
	}
	var failed []error
	for _, e := range parts(err) {
		if b := (*backgroundError)(nil); errors.As(e, &b) && errors.Is(e, ErrNotPruned) {
			s.folder.Options().Log.Warn("checkpoint: saved, but old ones could not be removed",
				"folder", s.folder.Dir(), "step", int64(b.Step), "error", b.Err)
			continue
		} else if errors.Is(e, errGivenUp) { // rank 0 reports the cause
			s.gone++
			s.folder.Options().Log.Warn("checkpoint: the parts of this process were not written", "folder", s.folder.Dir(), "error", e)
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
	if s.failures += len(failed); s.failures <= s.Tolerate {
		s.folder.Options().Log.Warn("checkpoint: not saved; the run continues",
			"folder", s.folder.Dir(), "failed", s.failures, "tolerated", s.Tolerate, "error", err)
		return nil
	}
	return err
}

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
