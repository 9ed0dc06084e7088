// Package managed holds a model's state and runs steps on it: parameters, optimizer, random numbers and whatever
// else lives in GoMLX variables stay on the device, under a strategy of package strategies.
//
// A step is a function that builds a graph: from the fields of a batch to losses, metrics and outputs by name.
//
//	train := managed.TrainStep(func(b *managed.Builder) {
//		logits := model(b.Scope(), b.Field("x"))
//		b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
//		b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
//	})
//	state, err := managed.New(strategies.Jit(runtime), managed.WithOptimizer(adam), managed.WithSeed(0))
//	result, err := loop.New(loop.On(loop.EachStep, train)).Run(ctx, state, batches)
//
// [TrainStep] adds the losses up, differentiates and updates the parameters; [TestStep] only computes. Both are
// steppers of package loop, and can be called by hand.
//
// A block whose inner values are to be computed again for the gradient, and not kept (Chen et al. 2016, "Training deep
// nets with sublinear memory cost"), begins with GoMLX's x.Checkpoint() and ends with y.StopCheckpoint(): less memory
// for one more forward pass of the block.
//
// The function runs once for each shape of batch, when the step is compiled. It may panic, as GoMLX's graph functions
// do; the panic becomes an error that names the line.
package managed
