package loop

// Report is passed to a callback after an iteration's tasks.
type Report struct {
	Elapsed Elapsed
	Logs    Logs
	// Latest has each name's newest value.
	Latest  Logs
	History *History
	// From is the run's beginning: zero, or the elapsed of [Continue].
	From  Elapsed
	Until Period
	Stop  error
	// Ahead is the number of batches that the run took and the state has not; those of data.Prefetch do not count. It
	// is 0, except after a failure or [ErrStop] in a block. In a run in [Epochs] whose batches do not report an epoch's
	// end, it is 1 except at the last batch.
	Ahead   int64
	state   any
	changes bool
	edge    edge
}

type edge struct{ ran, changed bool }

// RanAtEnd reports whether tasks or changes due at the run's end have run. changed is false if these were evaluations:
// the state is the last iteration's.
func (r Report) RanAtEnd() (ran, changed bool) { return r.edge.ran, r.edge.changed }

// State returns the state after the iteration's tasks, or nil outside a run. A callback without Changes must not change
// it.
func (r Report) State() any { return stateAt(r.state) }

// StatePointer returns a pointer to the variable with the state, or nil.
func (r Report) StatePointer() any { return r.state }

// SetState replaces the state. Another type, no state, or a callback without Changes is an error.
func (r Report) SetState(state any) error {
	if r.state != nil && !r.changes {
		return errObserves
	}
	return setState(r.state, state)
}

// With returns the report with the state at a pointer, for hand-written loops.
func (r Report) With(pointer any) Report {
	r.state, r.changes = pointer, true
	return r
}

// Detached returns a copy without History and State, for another goroutine: later iterations do not change it.
func (r Report) Detached() Report {
	r.Logs, r.Latest = r.Logs.Clone(), r.Latest.Clone()
	r.History, r.state = nil, nil
	return r
}

// Ending is passed to a callback at the run's end.
type Ending struct {
	Report
	Reason Reason
	Err    error
	// Partial: the last iteration counts but is incomplete, as when an evaluation after the step was cancelled.
	Partial bool
}

// Normal reports whether the run ended by its data, by [Until], or by [ErrStop], without an error.
func (e Ending) Normal() bool {
	return e.Err == nil && (e.Reason == DataEnded || e.Reason == UntilReached || e.Reason == Stopped)
}

// Beginning is passed to the Start of a callback.
type Beginning struct {
	// History has the earlier run's rows, or is nil.
	From    Elapsed
	History *History
	// Skipped is the number of earlier batches that plain data ([Data]) yields again, for the run to skip. In a
	// [Prepare] it is 0.
	Skipped int64
	Until   Period
	// MonitorsWhen is the schedule of the option, or nil.
	MonitorsWhen *Schedule
	Job          Job
	// Prepared has the options that each [Prepare] returned, in a Prepare those of earlier ones.
	Prepared []Option
	state    any
}

// State returns the state at the start, nil in a hand-written loop.
func (b Beginning) State() any { return stateAt(b.state) }

// StatePointer is [Report.StatePointer].
func (b Beginning) StatePointer() any { return b.state }
