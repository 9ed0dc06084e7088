// Package train has Ciclo's three loops as thin forms over package loop: [Loop] trains and evaluates at the end of each
// epoch, [Test] is an evaluation with hooks, [Predict] returns outputs. They work with any state and batch:
//
//	training := train.Loop[*Model, Batch]{
//		Step:  trainStep,
//		Epoch: loop.Epochs(1),
//		Tests: []loop.Evaluation[*Model, Batch]{loop.Evaluate("test", testStep, testData)},
//	}
//	result, err := training.Run(ctx, model, batches, loop.Until(loop.Epochs(10)), callbacks.ProgressBar(os.Stderr))
//
// [Of], [TestOf] and [PredictOf] make the loops of a state's methods. For Jaxloop's inner and outer loops see
// docs/from-jaxloop.md.
//
// # Hooks
//
// A loop calls the functions of each place in the order of its list of [Hooks]. A hook can be a method of an object, as
// a method value, or of the state, by [Method]:
//
//	training.Hooks = []train.Hooks[*Model, Batch]{
//		{Name: "summary", EpochEnd: summary.EpochEnd, End: summary.End},
//		{Name: "model", EpochEnd: train.Method((*Model).EpochEnd)},
//	}
//
// # Ends of a run
//
// The end of a run determines which hooks are called: "all" at each of their places, "until then" before the end. A
// cancelled context ends a run between two iterations or in a test, an error where it occurs.
//
//	hook                                   data ended  until reached  stopped  cancelled   failed      no data
//	Begin                                  once        once           once     until then  until then  never
//	BatchBegin, AfterStep, BatchEnd        all         all            all      until then  until then  never
//	AfterReset, EpochEnd, those of a test  all         all            all      until then  until then  never
//	AfterReset, EpochEnd without Epoch     once        once           once     never       never       never
//	End                                    once        once           once     never       never       never
//
// Work for every end belongs in the End of a [loop.Attendant]. A run that [loop.Until] ends before its first iteration
// calls no hook.
package train
