// Package loop is a small language to write training loops in: schedules say when, tasks change the state, callbacks
// look on, logs and a history keep what was reported.
//
//	training := loop.New(
//		loop.On(loop.EachStep, trainStep),
//		loop.On(loop.Every(loop.Steps(500)), testStep))
//	result, err := training.Run(ctx, state, batches, loop.Until(loop.Steps(2000)), callbacks.ProgressBar(os.Stderr))
//
// It knows nothing of models or devices: a state is any type S, a batch any type B. It needs the standard library alone.
// What stops early, keeps the best state, shows a progress bar or measures is in package callbacks, made of the same
// [Callback] and [Change] that a program can write itself.
//
// # A turn
//
// For every batch the loop makes one turn: it counts the step, runs the tasks that are due in the order in which they
// were given, makes the changes that are due, commits what was logged to the history, calls the callbacks that are due in
// their order, then looks whether somebody asked to stop ([ErrStop]), whether [Until] has been reached, and whether the context was cancelled.
//
// # Counting
//
// Steps are counted when they are finished: in the turn of the first batch a task sees one step, and
// Every(Steps(100)) is due in turns 100, 200, and so on. Ciclo counts before the step, so that its schedules also fire
// on the very first batch; here a periodic evaluation never runs on a model that has seen one batch only.
//
// # Endings
//
// A run ends with its data, with [Until], with an [ErrStop], with its context (see [WithSignals]), or with an error; a panic is
// an error too. [Result] has the last good state, what was counted and why it ended, in each case. The End of each [Attendant] is
// called, the last first. A turn that failed half way counts if it changed the state.
//
// # Loops in loops, and blocks
//
// An [Evaluation] is a loop on data of its own that becomes one row of the outer loop. A [BlockStepper] is given several
// batches at once wherever nothing else is due between them; the run is the same with or without.
//
// # Purity
//
// A schedule is a pure function of the time before and after a turn. It keeps nothing, so one value can be used in
// any number of loops and runs. What a callback has to remember is made when a run starts.
package loop
