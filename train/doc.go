// Package train has the predefined loops: [Loop] trains and tests at the end of each epoch, [Test] measures, [Predict]
// gives outputs. (Training in inner loops with evaluations between is package train/outer.) All are put together of
// package loop's parts, for any state and any batch:
//
//	training := train.Loop[*Model, Batch]{
//		Step:  trainStep,
//		Epoch: loop.Steps(500),
//		Tests: []train.Test[*Model, Batch]{{Step: testStep, Data: testData}},
//	}
//	result, err := training.Run(ctx, model, batches, loop.Until(loop.Steps(5000)), callbacks.ProgressBar(os.Stderr))
//
// Where a state has the steps as methods, [Of], [TestOf] and [PredictOf] make the loops of them.
//
// # Hooks
//
// A [Hook] is a function that is called at a fixed place of a loop. [Hooks], [TestHooks] and [PredictHooks] have a
// field for each place; a loop takes a list of them and calls each hook in the order of the list. Hooks can be methods
// of an object, as method values, or methods of the state, by [Method]:
//
//	training.Hooks = []train.Hooks[*Model, Batch]{
//		{Name: "summary", EpochEnd: summary.EpochEnd, End: summary.End},
//		{Name: "model", EpochEnd: train.Method((*Model).EpochEnd)},
//	}
//
// There is no hook for the begin of an epoch: the first begins at Begin, each other where the EpochEnd before it was.
//
// # Endings
//
// Which hooks are called depends on how a run ends. "All" means at each of their places; "until then" at those before
// the end: a cancelled context ends a run between two turns or in a test, an error where it comes up.
//
//	hook                                   data ended  until reached  stopped  cancelled   failed      no data
//	Begin                                  once        once           once     until then  until then  never
//	BatchBegin, AfterStep, BatchEnd        all         all            all      until then  until then  never
//	AfterReset, EpochEnd, those of a test  all         all            all      until then  until then  never
//	AfterReset, EpochEnd without Epoch     once        once           once     never       never       never
//	End                                    once        once           once     never       never       never
//
// What must happen however a run ends (to close a file) is the End of a [loop.Attendant], an option of the run. A run
// that [loop.Until] ends before its first turn calls no hook, as one without data.
package train
