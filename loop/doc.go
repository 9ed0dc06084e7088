// Package loop runs training loops: schedules decide when tasks, callbacks and evaluations run, and a history keeps
// what they log.
//
//	training := loop.New(
//		loop.On(loop.EachStep, trainStep),
//		loop.On(loop.Every(loop.Steps(500)), testStep))
//	result, err := training.Run(ctx, state, batches, loop.Until(loop.Steps(2000)), callbacks.ProgressBar(os.Stderr))
//
// The package knows nothing of models or devices: a state has any type S and a batch any type B. Package callbacks has
// early stopping, the best state, progress bars, recorders and measurements.
//
// [Loop.Run] makes one iteration for each batch. It counts the step, runs the tasks that are due, runs the changes that
// are due ([Callback] with Changes), adds the logs to the history, and calls the other callbacks that are due.
// Every(Steps(100)) is due in iterations 100, 200, and so on; [Schedule.AndAtStart] adds the start of the run. However
// a run ends, [Result] has the last good state, the counts and the reason.
//
// An [Evaluation] is a loop on other data whose logs become one row of the outer loop. A [Stepper] with StepBlock
// receives several batches at once where nothing else is due between them. If the state belongs to several processes
// ([Job]), all of them run the same loop and agree on each decision.
package loop
