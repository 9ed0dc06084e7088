package data

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Stages accumulates the time of a pipeline's stages for callbacks.Measure and callbacks.Bar. The zero value is ready
// to use. It is safe for concurrent use.
//
// A set's stages are "copy" (gathering examples), "read", "decode" and "resize" of images.Open, "augment" of
// images.Augment, and "map" for the rest of [Set.MapBatches]. In flaxlike use FitBatches, not Fit. Stages run in
// parallel: their sum may exceed the elapsed time.
type Stages struct {
	mu    sync.Mutex
	names []string
	times map[string]time.Duration
}

// Note adds time to a stage.
func (s *Stages) Note(stage string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.times[stage]; !ok {
		if s.times == nil {
			s.times = map[string]time.Duration{}
		}
		s.names = append(s.names, stage)
	}
	s.times[stage] += took
}

// All yields each stage and its time so far.
func (s *Stages) All() iter.Seq2[string, time.Duration] {
	return func(yield func(string, time.Duration) bool) {
		s.mu.Lock()
		names := slices.Clone(s.names)
		times := make([]time.Duration, len(names))
		for i, name := range names {
			times[i] = s.times[name]
		}
		s.mu.Unlock()
		for i, name := range names {
			if !yield(name, times[i]) {
				return
			}
		}
	}
}

// Timed records the time of each stage of the batches in stages, unless nil.
func Timed(stages *Stages) Option {
	return option(func(d *dealing) {
		if d.watch = nil; stages != nil {
			d.watch = &watch{stages: stages}
		}
	})
}

// Note adds time to a stage instead of "map", in functions of [Set.MapBatches] whose batches are [Timed].
func (b Batch) Note(stage string, took time.Duration) {
	if b.watch != nil {
		b.watch.note(stage, took)
	}
}

type watch struct {
	stages *Stages
	noted  atomic.Int64 // nanoseconds since the change began
}

func (w *watch) own() *watch {
	if w == nil {
		return nil
	}
	return &watch{stages: w.stages}
}

func (w *watch) now() (begin time.Time) {
	if w != nil {
		begin = time.Now()
	}
	return begin
}

func (w *watch) end(stage string, begin time.Time) {
	if w != nil {
		w.note(stage, time.Since(begin))
	}
}

func (w *watch) note(stage string, took time.Duration) {
	w.stages.Note(stage, took)
	w.noted.Add(int64(took))
}

// change records as "map" the time that f does not record.
func (w *watch) change(b Batch, f func(Batch) (Batch, error)) (Batch, error) {
	if w == nil {
		return f(b)
	}
	begin, before := time.Now(), w.noted.Load()
	b.watch = w
	b, err := f(b)
	b.watch = nil
	if rest := time.Since(begin) - time.Duration(w.noted.Load()-before); rest > 0 {
		w.stages.Note("map", rest)
	}
	return b, err
}
