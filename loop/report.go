package loop

// Report is what a callback is given, after the tasks of a turn.
type Report struct {
	Elapsed Elapsed
	// Logs is what was logged in this turn.
	Logs Logs
	// Latest has the newest value of each name that was logged in this run.
	Latest  Logs
	History *History
	// From is where this run began: zero, or what the option [Continue] says.
	From Elapsed
	// Until is the end of the run, nil if none was set.
	Until Period
	// Stop is the first request to stop, as [Result].Stop will have it; nil if there is none.
	Stop error
	// Ahead is the number of batches that were taken from the data and are not in the state. It is 0 unless a step
	// failed or returned [ErrStop] within a block, or the run counts in [Epochs] and the batches do not say where an
	// epoch ends (see [Stepper]): then it is 1, but for the last batch. It does not count what data.Prefetch has taken.
	Ahead int64
	state State
}

// State is the state of the run after the tasks of the turn, nil if the report does not come from a run. It must not be
// changed; a [Changer] may.
func (r Report) State() any { return r.state.Get() }

func (r Report) held() State { return r.state }

// With is the report with a state, for loops written by hand.
func (r Report) With(state State) Report {
	r.state = state
	return r
}

// Detached is a copy of the report that does not change when the loop goes on, for use on another goroutine. It has no
// History and no State, which belong to the loop.
func (r Report) Detached() Report {
	r.Logs, r.Latest = r.Logs.Clone(), r.Latest.Clone()
	r.History, r.state = nil, State{}
	return r
}

// Ending is what a callback is given when the run is over.
type Ending struct {
	Report
	Reason Reason
	// Err is the error of the run, nil if there was none.
	Err error
	// Partial says that the last turn counts but was not completed, as when an evaluation after a training step was
	// cancelled. A run resumed from this state would lack the rest of that turn.
	Partial bool
}

// Normal reports whether the run ended without an error: its data ended, [Until] was reached, or it was stopped.
func (e Ending) Normal() bool {
	return e.Err == nil && (e.Reason == DataEnded || e.Reason == UntilReached || e.Reason == Stopped)
}

// Beginning is what a callback is started with.
type Beginning struct {
	// From is where the run begins. History has the rows of the earlier run that it resumes, nil if there is none.
	From    Elapsed
	History *History
	// Skipped is the number of batches that the run leaves out because its data is a plain iterator ([Data]): those of
	// the earlier run. It is 0 if the source begins at the position by itself, and in a [Prepare].
	Skipped int64
	// Until is the end of the run, nil if none was set.
	Until Period
	// MonitorsWhen is the schedule of the option of that name, nil without it.
	MonitorsWhen *Schedule
	// Job is the processes that make the run together, nil where this one is alone (see [Job]).
	Job Job
	// Prepared are, in a [Prepare], the options that those before it have returned.
	Prepared []Option
	state    State
}

// State is the state that the run begins with, nil in a loop written by hand.
func (b Beginning) State() any { return b.state.Get() }

func (b Beginning) held() State { return b.state }
