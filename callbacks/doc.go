// Package callbacks has what runs beside a loop: it stops early ([StopEarly]), keeps the best state ([KeepBest]), lowers the
// learning rate ([ReduceOnPlateau]), undoes NaN ([NonFinite]), shows a bar ([ProgressBar]), writes logs ([Log], [CSV], [JSONL]), measures
// ([Measure], [Profile]), watches over a run ([Watchdog], [Heartbeat], [TimeLimit]). Each is an option of a run:
//
//	result, err := training.Run(ctx, state, batches,
//		callbacks.ProgressBar(os.Stderr),
//		callbacks.StopEarly("loss_test", loop.Lowest, callbacks.Evaluations(3)),
//		callbacks.KeepBest("loss_test", loop.Lowest))
//
// Two types carry them all: a [loop.Callback] looks, a [loop.Change] may put another state in. In a loop written by hand,
// call its Start, then Watch or Change in each pass, and End:
//
//	early, err := callbacks.StopEarly("loss", loop.Lowest, loop.Steps(100)).Start(loop.Beginning{})
//	…
//	if err := early.Watch(ctx, pass.Report(logs, nil)); errors.Is(err, loop.ErrStop) {
//
// TensorBoard's event files are written by package callbacks/tensorboard, checkpoints by package checkpoint.
// [Background] has a callback look on a goroutine of its own.
package callbacks
