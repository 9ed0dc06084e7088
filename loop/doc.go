// Package loop is a small language to write training loops in: schedules say when, tasks change the state, callbacks
// look on, logs and a history keep what was reported.
//
//	training := loop.New(
//		loop.On(loop.EachStep, trainStep),
//		loop.On(loop.Every(loop.Steps(500)), testStep))
//	result, err := training.Run(ctx, state, batches, loop.Until(loop.Steps(2000)), callbacks.ProgressBar(os.Stderr))
//
// It knows nothing of models or devices: a state is any type S, a batch any type B. It needs the standard library
// alone. Package callbacks has early stopping, the best state, progress bars, recorders and measurements, made of the
// same [Callback] and [Change] that a program can write itself.
//
// # A turn
//
// For every batch the loop makes one turn. It counts the step, runs the tasks that are due, in their order, makes the
// changes that are due, adds what was logged to the history, and calls the callbacks that are due, in their order. Then
// the run ends if a task or callback returned [ErrStop], if [Until] is reached, or if the context was cancelled.
//
// # Counting
//
// Steps are counted when they are finished: in the turn of the first batch a task sees one step, and
// Every(Steps(100)) is due in turns 100, 200, and so on. [Schedule.AndAtStart] adds the start of the run.
//
// # Endings
//
// A run ends with its data, with [Until], with an [ErrStop], with its context (see [WithSignals]), or with an error; a
// panic becomes an error. In each case [Result] has the last good state, what was counted and why the run ended, and
// the End of each [Attendant] is called, in the reverse order. A turn that failed half way counts if it changed the
// state.
//
// # Loops in loops, and blocks
//
// An [Evaluation] is a loop on other data whose logs become one row of the outer loop. A step with StepBlock
// ([Stepper]) is given several batches at once where nothing else is due between them; the results are the same with or
// without. Data that depends on the state reads one with the method OnRead ([State]), which shows every step whose
// batch has been handed out. (The tests compare runs with a plain model of all this: model_reference_test.go.)
//
// # Several processes
//
// Where the state belongs to several processes ([Job]), all of them run the same loop and agree on what a clock, a
// signal, the data or an error of one decides.
//
// # Purity
//
// A schedule is a pure function of what had elapsed before and after a turn. It keeps nothing, so one value can be used
// in any number of loops and runs. What a callback has to remember is made when a run starts.
package loop
