// Package managed holds a model's state and runs steps on it. Parameters, optimizer variables, random numbers and other
// GoMLX variables stay on the device, under a strategy of package strategies.
//
// A step is a function that builds a graph from the fields of a batch to named losses, metrics and outputs.
//
//	train := managed.TrainStep(func(b *managed.Builder) {
//		logits := model(b.Scope(), b.Field("x"))
//		b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
//		b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
//	})
//	state, err := managed.New(strategies.Jit(runtime), managed.WithOptimizer(adam), managed.WithSeed(0))
//	result, err := loop.New(loop.On(loop.EachStep, train)).Run(ctx, state, batches)
//
// [TrainStep] adds the losses, differentiates the sum and updates the parameters. [TestStep] only computes. Both are
// steppers of package loop and can also be called directly.
//
// The function runs once per shape of batch, when the step is compiled. It may panic, as GoMLX's graph functions do;
// the panic becomes an error that names the line.
//
// To save memory, a block between GoMLX's x.Checkpoint() and y.StopCheckpoint() recomputes its inner values for the
// gradient instead of keeping them, for one more forward pass of the block (Chen et al. 2016, "Training deep nets with
// sublinear memory cost").
package managed
