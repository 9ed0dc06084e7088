// Package callbacks has callbacks for the runs of package loop: early stopping ([StopEarly]), the best state
// ([KeepBest], [OnBest]), a lower learning rate ([ReduceOnPlateau]), recovery from NaN ([NonFinite]), a progress bar
// ([ProgressBar]), recorders ([CSV], [JSONL], [Log]), measurements ([Measure], [Profile], [LogThroughput]) and
// supervision ([Watchdog], [Heartbeat], [TimeLimit], [WarnSpike]). Each is an option of a run:
//
//	result, err := training.Run(ctx, state, batches,
//		callbacks.ProgressBar(os.Stderr),
//		callbacks.StopEarly("loss_test", loop.Lowest, callbacks.Evaluations(3)),
//		callbacks.KeepBest("loss_test", loop.Lowest))
//
// They are values of two types: a [loop.Callback] observes the run, a [loop.Change] may change its state. In a loop
// written by hand, call Start, then Watch or Change in each pass, then End:
//
//	early, err := callbacks.StopEarly("loss", loop.Lowest, loop.Steps(100)).Start(loop.Beginning{})
//	…
//	if err := early.Watch(ctx, pass.Report(logs, nil)); errors.Is(err, loop.ErrStop) {
//
// Where several processes make a run together ([loop.Job]), what shows or writes does so in the one of rank 0: bars,
// logs, files, profiles. What decides by the run's numbers runs in all of them.
//
// [Background] runs a callback on its own goroutine. Package callbacks/tensorboard writes event files for TensorBoard,
// package checkpoint saves and resumes runs.
package callbacks
