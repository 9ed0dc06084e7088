// Package managed holds a model's state and runs steps on it. Parameters, optimizer variables and random numbers stay
// on the device, under a strategy of package strategies.
//
// A step is a function that builds a graph from a batch's fields to named losses, metrics and outputs.
//
//	train := managed.TrainStep(func(b *managed.Builder) {
//		logits := model(b.Scope(), b.Field("x"))
//		b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
//		b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
//	})
//	state, err := managed.New(strategies.Jit(runtime), managed.WithOptimizer(adam), managed.WithSeed(0))
//	result, err := loop.New(loop.On(loop.EachStep, train)).Run(ctx, state, batches)
//
// [TrainStep] differentiates the sum of the losses and updates the parameters; [TestStep] only computes. Both are
// steppers of package loop and can be called directly. The function runs once per shape of batch, at compilation.
//
// Between GoMLX's x.Checkpoint() and y.StopCheckpoint(), inner values are recomputed for the gradient, to save memory
// (Chen et al. 2016, "Training deep nets with sublinear memory cost").
package managed
