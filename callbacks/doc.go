// Package callbacks has callbacks for the runs of package loop: early stopping ([StopEarly]), the best state
// ([KeepBest], [OnBest]), learning rate reduction ([ReduceOnPlateau]), recovery from NaN ([NonFinite]), a progress bar
// ([ProgressBar]), recorders ([CSV], [JSONL], [Log]), measurements ([Measure], [Profile], [LogThroughput]) and
// supervision ([Watchdog], [Heartbeat], [TimeLimit], [WarnSpike], [Notify]). Each is an option of a run.
//
// An error of a caller's function, also [loop.ErrStop], ends the run. A nil logger logs nothing. Of several settings,
// the last that sets a field counts. Files of [JSONL], [CSV] and [Heartbeat] must be regular.
//
// In a job ([loop.Job]), rank 0 shows and writes: bars, logs, files, profiles. Callbacks that decide by the run's
// numbers run in all ranks.
package callbacks
