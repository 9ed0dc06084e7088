// Package loop runs training loops: schedules decide when tasks, callbacks and evaluations run, and a history keeps
// their logs.
//
//	training := loop.New(
//		loop.On(loop.EachStep, trainStep),
//		loop.On(loop.Every(loop.Steps(500)), testStep))
//	result, err := training.Run(ctx, state, batches, loop.Until(loop.Steps(2000)), callbacks.ProgressBar(os.Stderr))
//
// A state has any type S and a batch any type B. Package callbacks has early stopping, progress bars and more.
//
// [Loop.Run] makes one iteration for each batch: it counts the step, runs the due tasks and changes
// ([Callback].Changes), adds the logs to the history, and calls the other due callbacks.
//
// An [Evaluation] is a loop on other data whose logs become one row of the outer loop. A [Stepper] can make several
// steps at once where nothing else is due between them. Several processes ([Job]) run the same loop and agree on each
// decision.
package loop
