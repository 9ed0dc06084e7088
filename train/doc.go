// Package train has Ciclo's three loops as thin forms over package loop: [Loop] trains and evaluates at the end of each
// epoch, [Test] is an evaluation with hooks, [Predict] returns outputs. They work with any state and any batch:
//
//	training := train.Loop[*Model, Batch]{
//		Step:  trainStep,
//		Epoch: loop.Epochs(1),
//		Tests: []loop.Evaluation[*Model, Batch]{loop.Evaluate("test", testStep, testData)},
//	}
//	result, err := training.Run(ctx, model, batches, loop.Until(loop.Epochs(10)), callbacks.ProgressBar(os.Stderr))
//
// If a state has the steps as methods, [Of], [TestOf] and [PredictOf] make the loops of them. Jaxloop's inner and outer
// loops need no type: docs/from-jaxloop.md writes them with package loop.
//
// # Hooks
//
// A hook is a function that is called at a fixed place of a loop. [Hooks] has a field for each place. A loop takes a
// list of Hooks and calls the functions of each place in the order of the list. A hook can be a method of an object, as
// a method value, or a method of the state, by [Method]:
//
//	training.Hooks = []train.Hooks[*Model, Batch]{
//		{Name: "summary", EpochEnd: summary.EpochEnd, End: summary.End},
//		{Name: "model", EpochEnd: train.Method((*Model).EpochEnd)},
//	}
//
// There is no hook for the begin of an epoch: the first epoch begins at Begin, each later one at the previous EpochEnd.
//
// # Ends of a run
//
// The end of a run determines which hooks are called. "All" means at each of their places. "Until then" means at the
// places before the end: a cancelled context ends a run between two iterations or in a test, an error where it occurs.
//
//	hook                                   data ended  until reached  stopped  cancelled   failed      no data
//	Begin                                  once        once           once     until then  until then  never
//	BatchBegin, AfterStep, BatchEnd        all         all            all      until then  until then  never
//	AfterReset, EpochEnd, those of a test  all         all            all      until then  until then  never
//	AfterReset, EpochEnd without Epoch     once        once           once     never       never       never
//	End                                    once        once           once     never       never       never
//
// Work that must happen after every end, such as closing a file, belongs in the End of a [loop.Attendant]. A run that
// [loop.Until] ends before its first iteration calls no hook.
package train
