package data

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Stages adds up how long the stages of a pipeline work, so that one that is too slow for its steps can be found:
// [Timed] has the batches of a set noted in it, callbacks.Measure and callbacks.Bar say which of the stages a run
// waited for. The zero value is ready for use; safe for concurrent use.
//
// The stages of a set are "copy" (memory for a batch, and its examples put together), of an [ImageFolder] "read" (a
// file), "decode" and "resize" (also the change to 0 to 1), "augment" of [Augment], and "map", all else that functions
// of [Set.MapBatches] do. Only these: a [Map] of batches is behind them, and [Stages.Note] is for it. A flaxlike model
// notes them in FitBatches, which is given batches; Fit deals them out itself. They work side by side, on as many
// goroutines as there are processors: their times may add up to more than has passed.
type Stages struct {
	mu    sync.Mutex
	names []string // in the order of their first notes
	times map[string]time.Duration
}

// Note adds the time that a stage took, for what is not in the list above, as a source of your own.
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

// All is each stage with its time so far, in the order in which they were first noted.
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

// Timed notes in stages how long the stages of the batches work. Nil notes nothing.
func Timed(stages *Stages) Option {
	return func(d *dealing) {
		if d.watch = nil; stages != nil {
			d.watch = &watch{stages: stages}
		}
	}
}

// watch notes what functions do with a batch, stage by stage. A nil watch notes nothing, and reads no clock.
type watch struct {
	stages *Stages
	noted  atomic.Int64 // nanoseconds since the change began
}

// own is a watch for one batch.
func (w *watch) own() *watch {
	if w == nil {
		return nil
	}
	return &watch{stages: w.stages}
}

// now is when a stage begins.
func (w *watch) now() (begin time.Time) {
	if w != nil {
		begin = time.Now()
	}
	return begin
}

// end notes a stage, and is when the next one begins.
func (w *watch) end(stage string, begin time.Time) time.Time {
	if w == nil {
		return begin
	}
	now := time.Now()
	w.stages.Note(stage, now.Sub(begin))
	w.noted.Add(int64(now.Sub(begin)))
	return now
}

// change is f(b), with a note of what f does beside the stages that are noted in it.
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
