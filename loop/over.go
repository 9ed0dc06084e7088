package loop

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Pass is one iteration of a hand-written loop.
type Pass[B any] struct {
	Batch B
	// Before is the previous pass's Elapsed.
	Before, Elapsed Elapsed
	from            Elapsed
	until           Period
}

// Due reports whether a schedule is due in this pass.
func (p Pass[B]) Due(when Schedule) bool { return when.Due(p.Before, p.Elapsed) }

// Samples is the number of examples in the batch.
func (p Pass[B]) Samples() int64 { return p.Elapsed.Samples - p.Before.Samples }

// Report returns the report for the Watch of an [Attendant].
func (p Pass[B]) Report(logs Logs, history *History) Report {
	return Report{Elapsed: p.Elapsed, Logs: logs, History: history, From: p.from, Until: p.until}
}

// Over counts for a hand-written loop. It yields each batch with its elapsed, and ends with the data or by [Until], as
// [Loop.Run] does. It also takes [Continue], without a history; any other option is an error.
//
// An error of the data or the options is yielded once, at the end. Over counts epochs if the batches report them
// ([Stepper]) or Until is in [Epochs].
func Over[B any](data Source[B], options ...Option) iter.Seq2[Pass[B], error] {
	options = slices.Clone(options)
	return func(yield func(Pass[B], error) bool) {
		s := newSettings(options, nil)
		p := Pass[B]{Before: s.from, Elapsed: s.from, from: s.from, until: s.until}
		if err := s.checkOver(isNil(data)); err != nil {
			yield(p, err)
			return
		}
		if p.ended() {
			return
		}
		size := sizer(&p.Batch)
		c := newClock(s.from)
		p.Elapsed.Date = cmp.Or(p.Elapsed.Date, c.date)
		all := epochsOf(data, s.from, s.until)
		all.Ahead, all.Newest = byEpochs(s.until), &p.Batch
		all.All(func(last bool, err error) bool {
			p.Before = p.Elapsed
			samples := int64(1)
			if err == nil && size != nil {
				if samples = int64(size()); samples < 0 {
					err = errNegative(samples)
				}
			}
			if err != nil {
				yield(p, &runError{fmt.Sprintf("step %d: data", p.Elapsed.Steps+1), err})
				return false
			}
			if last {
				p.Elapsed.Epochs++
			}
			p.Elapsed = c.next(p.Elapsed, samples)
			return yield(p, nil) && !p.ended()
		})
	}
}

func (p Pass[B]) ended() bool { return p.until != nil && p.Elapsed.Reached(p.until) }
