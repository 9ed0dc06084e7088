// Package callbacks has callbacks for the runs of package loop: early stopping ([StopEarly]), the best state
// ([KeepBest], [OnBest]), a lower learning rate ([ReduceOnPlateau]), recovery from NaN ([NonFinite]), a progress bar
// ([ProgressBar]), recorders ([CSV], [JSONL], [Log]), measurements ([Measure], [Profile], [LogThroughput]) and
// supervision ([Watchdog], [Heartbeat], [TimeLimit], [WarnSpike]). Each is an option of a run, as the first example
// shows.
//
// They are values of two types: a [loop.Callback] observes the run, a [loop.Change] may change its state. In a loop
// written by hand, call Start, then Watch or Change in each pass, then End, as the second example shows.
//
// Where several processes make a run together ([loop.Job]), what shows or writes does so in the one of rank 0: bars,
// logs, files, profiles. What decides by the run's numbers runs in all of them.
//
// [Background] runs a callback on its own goroutine. Package callbacks/tensorboard writes event files for TensorBoard,
// package checkpoint saves and resumes runs.
package callbacks
