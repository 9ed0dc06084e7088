package loop

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/shield"
)

// SingleSteps makes each step before the run takes the next batch: a [BlockStepper] is given one batch at a time. A run
// needs it where its data reads the state (see [State]) on a goroutine of its own, or where several processes make the
// run. data.Prefetch takes batches ahead nevertheless, and so does a run that counts in [Epochs] if the batches do not
// say where an epoch ends (see [Stepper]).
func SingleSteps() Option { return setting(func(s *settings) { s.single = true }) }

// reading lets the state be read while batches wait for their steps.
type reading struct {
	on      bool        // the state has OnRead
	waiting atomic.Bool // batches wait
	// ahead: the source is asked for a batch while one waits, to know whether that ends its epoch. It is no part of
	// the run, which a source that is left behind must not hold.
	ahead *atomic.Bool
}

// beginReading gives the state the function that it calls before it is read. Where the run is one within the data
// source of another, it makes the steps that wait there.
func (r *run[S, B]) beginReading() (end func(), err error) {
	end, r.reading.ahead = func() {}, new(atomic.Bool)
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

const untilStepped = "the state was read while batches wait for their steps"

// errRead stands for a batch where the source reads the state: the steps that wait are made.
var errRead = errors.New("the state is read")

// beforeRead makes the steps that wait.
func (r *run[S, B]) beforeRead() error {
	ahead := r.reading.ahead.Load()
	if !r.reading.waiting.Load() && !ahead {
		return nil
	}
	s := r.source
	own, parent, feeds := origin()
	switch {
	case own != s.goroutine && parent != s.goroutine && !feeds:
		return nil // it reads beside the run, and sees the steps that are made
	case own != s.goroutine:
		return errors.New("loop: " + untilStepped + ", on another goroutine than the run's: read it in the data source itself, where neither Prefetch nor iter.Pull runs it, or give the run the option SingleSteps")
	case r.job != nil:
		return errors.New("loop: " + untilStepped + ", which the processes of a job only make together: give the run the option SingleSteps")
	case !s.inside:
		return errors.New("loop: " + untilStepped + ", by " + r.activity.String() + ", which must not read it: give the run the option SingleSteps")
	case ahead:
		return errors.New("loop: the state was read by the data while a batch is taken ahead, to know whether it ends its epoch: count in steps, or give the batches the method InEpoch")
	case !s.leave():
		return ErrSourceLeft
	}
	r.source.turn(false, errRead)
	return r.failure
}

// origin returns the number of the goroutine that calls it and of the one that started it. feeds: it was started to
// iterate over data.
func origin() (own, parent string, feeds bool) {
	text := make([]byte, 8<<10)
	n := runtime.Stack(text, false)
	for n == len(text) && n < 1<<20 {
		text = make([]byte, 2*n)
		n = runtime.Stack(text, false)
	}
	own, _, _ = strings.Cut(strings.TrimPrefix(string(text[:n]), "goroutine "), " ") // "goroutine 1 [running]:"
	_, start, _ := strings.Cut(string(text[:n]), "\ncreated by ")                    // "created by iter.Pull in goroutine 1"
	start, _, _ = strings.Cut(start, "\n")
	by, parent, _ := strings.Cut(start, " in goroutine ")
	return own, parent, strings.HasPrefix(by, "iter.") || strings.HasPrefix(by, "github.com/lazo-ml/lazo/data.")
}
