// Package train has the predefined loops: [Loop] trains and tests at the end of each epoch, [Test] measures, [Predict]
// gives outputs, and [Outer] trains in inner loops with evaluations between, as Jaxloop does. All are put together of
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
// A [Hook] is called at a fixed place of a loop. It can be a field of [Hooks], [TestHooks] or [PredictHooks], a method of a
// state (see [Of]), or a method of an object among the Callbacks. The methods have the form of Hook:
//
//	EpochEnd(ctx context.Context, turn *loop.Turn[S, B]) error
//
// A method that has the name of a hook and another form is an error, and so is an object with no hook that its loop knows.
// These are the names; Ciclo's are strings, and the steps are among them (train_step, test_step, predict_step,
// reset_step), which here are the fields Step and Reset and the methods TrainStep, TestStep, PredictStep and ResetStep.
//
//	Ciclo                   field of Hooks            method
//	on_train_begin          Hooks.Begin               TrainBegin
//	on_train_batch_begin    Hooks.BatchBegin          TrainBatchBegin
//	on_train_step           Hooks.AfterStep           AfterTrainStep
//	on_reset_step           Hooks.AfterReset          AfterResetStep, in training and in tests
//	on_epoch_end            Hooks.EpochEnd            EpochEnd
//	on_train_batch_end      Hooks.BatchEnd            TrainBatchEnd
//	on_train_end            Hooks.End                 TrainEnd
//	on_test_begin           TestHooks.Begin           TestBegin
//	on_reset_step           TestHooks.AfterReset      AfterResetStep
//	on_test_batch_begin     TestHooks.BatchBegin      TestBatchBegin
//	on_test_step            TestHooks.AfterStep       AfterTestStep
//	on_test_batch_end       TestHooks.BatchEnd        TestBatchEnd
//	on_test_end             TestHooks.End             TestEnd
//	on_predict_begin        PredictHooks.Begin        PredictBegin
//	on_predict_batch_begin  PredictHooks.BatchBegin   PredictBatchBegin
//	on_predict_step         PredictHooks.AfterStep    AfterPredictStep
//	on_predict_batch_end    PredictHooks.BatchEnd     PredictBatchEnd
//	on_predict_end          PredictHooks.End          PredictEnd
//
// There is no hook for the begin of an epoch, as there is none in Ciclo: the first begins at TrainBegin, each other where
// the EpochEnd before it was.
//
// # Endings
//
// Which hooks run depends on how a run ends. "All" means in each of their places; "until then" in those that came before
// the break: a context that is cancelled breaks a run off between two turns or in a test, an error where it comes up.
//
//	hook                                   data ended  until reached  stopped  cancelled   failed      no data
//	Begin                                  once        once           once     until then  until then  never
//	BatchBegin, AfterStep, BatchEnd        all         all            all      until then  until then  never
//	AfterReset, EpochEnd, those of a test  all         all            all      until then  until then  never
//	AfterReset, EpochEnd without Epoch     once        once           once     never       never       never
//	End                                    once        once           once     never       never       never
//
// What must happen however a run ends (to close a file) is the End of a [loop.Attendant], an option of the run. A run
// that [loop.Until] ends before its first turn has no hooks, as one without data.
package train
