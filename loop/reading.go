package loop

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/ahead"
	"github.com/lazo-ml/lazo/internal/shield"
)

// SingleSteps makes each step before the run takes the next batch: StepBlock ([Stepper]) is given one batch at a time.
// A run needs it where its data depends on the steps in a way that the state cannot see, as by a file, or where data
// reads the state and several processes make the run. data.Prefetch takes batches ahead nevertheless, and so does a run
// that counts in [Epochs] if the batches do not say where an epoch ends (see [Stepper]).
func SingleSteps() Option { return setting(func(s *settings) { s.single = true }) }

// reading lets the state be read while batches wait for their steps. Whichever goroutine reads it makes these steps
// first, if the source has control; else the run is at work, and nothing orders the read and its steps.
type reading struct {
	on      bool                   // the state has OnRead
	waiting atomic.Bool            // batches wait; where a read makes their steps, until they are made
	making  sync.Mutex             // held by a read that makes the steps: other reads wait for them
	maker   atomic.Pointer[string] // the goroutine of that read; who changes it has control
}

// made lets other reads go on. The caller has control.
func (q *reading) made() {
	if q.on && q.maker.Load() != nil {
		q.waiting.Store(false)
		q.maker.Store(nil)
		q.making.Unlock()
	}
}

// beginReading gives the state the function that it calls before it is read. Where the run is one within the data
// source of another, it makes the steps that wait there.
func (r *run[S, B]) beginReading() (end func(), err error) {
	end, r.early = func() {}, new(early)
	state, ok := as[abilities.Queued](r.turn.State, &r.turn.State)
	if !ok {
		return end, nil
	}
	err = shield.Do(func() (err error) {
		remove, err := state.OnRead(r.beforeRead)
		if err == nil && remove != nil {
			r.reading.on, end = true, remove
		}
		return err
	})
	return end, err
}

const untilStepped = "loop: the state was read while batches wait for their steps"

var (
	errReadAhead = errors.New("loop: the state was read on a goroutine of data.Prefetch or data.ParallelMap, which makes " +
		"batches before the steps of earlier ones: read it in the data source, outside Prefetch and ParallelMap")
	errReadByJob = errors.New(untilStepped + ", which the processes of a job only make together: give the run the option SingleSteps")
	errReadEpoch = errors.New("loop: the state was read by the data while a batch is taken ahead, to know whether it ends its epoch: " +
		"count in steps, or give the batches the method InEpoch")
)

// errRead stands for a batch where the state is read: the steps that wait are made.
var errRead = errors.New("the state is read")

// beforeRead makes the steps that wait.
func (r *run[S, B]) beforeRead() error {
	q := &r.reading
	switch {
	case ahead.Running() && startedByData():
		return errReadAhead
	case !q.waiting.Load() && !r.early.asked.Load():
		return nil
	}
	own, parent := origin()
	if m := q.maker.Load(); m != nil && (own == *m || parent == *m) {
		return nil // it is the step that the read makes
	}
	q.making.Lock()
	if !q.waiting.Load() && !r.early.asked.Load() { // another read has made them
		q.making.Unlock()
		return nil
	}
	s := r.source
	if !s.control.TryLock() {
		q.making.Unlock()
		if own == s.goroutine {
			return errors.New(untilStepped + ", by " + r.activity.String() + ", which must not read it: give the run the option SingleSteps")
		}
		return nil
	}
	defer s.control.Unlock()
	var err error
	left := s.crossings.Load() == leftBehind
	switch {
	case !left && r.job != nil:
		err = errReadByJob
	case !left && r.early.asked.Load():
		err = errReadEpoch
	case !left && s.leave():
		q.maker.Store(&own)
		defer q.made()
		s.turn(false, errRead)
		return r.failure
	case own == s.goroutine:
		err = ErrSourceLeft
	}
	q.making.Unlock()
	return err
}

// origin returns the number of the goroutine that calls it and of the one that started it.
func origin() (own, parent string) {
	text := make([]byte, 8<<10)
	n := runtime.Stack(text, false)
	for n == len(text) && n < 1<<20 {
		text = make([]byte, 2*n)
		n = runtime.Stack(text, false)
	}
	own, _, _ = strings.Cut(strings.TrimPrefix(string(text[:n]), "goroutine "), " ") // "goroutine 1 [running]:"
	_, start, _ := strings.Cut(string(text[:n]), "\ncreated by ")                    // "created by iter.Pull in goroutine 1"
	start, _, _ = strings.Cut(start, "\n")
	_, parent, _ = strings.Cut(start, " in goroutine ")
	return own, parent
}

// startedByData reports whether package data started the goroutine that calls it. It walks the whole stack, 1 to 4
// microseconds, and allocates nothing.
func startedByData() bool {
	var stack [64]uintptr // the innermost call first
	first := uintptr(0)
	for skip := 0; ; skip += len(stack) {
		n := runtime.Callers(skip, stack[:])
		if n >= 2 {
			first = stack[n-2] // the last is runtime.goexit
		} else if n == 1 && skip > 0 {
			first = stack[len(stack)-1]
		}
		if n < len(stack) {
			break
		}
	}
	f := runtime.FuncForPC(first - 1)
	return f != nil && strings.HasPrefix(f.Name(), "github.com/lazo-ml/lazo/data.")
}
