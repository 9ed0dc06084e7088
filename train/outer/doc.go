// Package outer trains in inner loops of some steps, with evaluations and actions at their borders: [Loop].
// [Continuous] evaluates the checkpoints that another process saves. Both are made of packages loop and train, for
// any state and batch:
//
//	training := outer.Loop[State, Batch]{
//		Train:      trainStep,
//		Data:       func(ctx context.Context, from loop.Elapsed) (loop.Data[Batch], error) { … },
//		TotalSteps: 1000,
//		LoopSteps:  100,
//		Evals:      []outer.Eval[State, Batch]{{Test: test, Every: 2}}, // a train.Test
//		End:        []outer.Action[State]{{Name: "print", Do: print}},
//	}
//	result, err := training.Run(ctx, state, checkpoint.Resume("run", checkpoint.Every(loop.Steps(500))))
package outer
