// Package managed holds a model's state and runs steps on it. Parameters, optimizer variables and random numbers stay
// on the device, under a strategy of package strategies.
//
// A step is a function that builds a graph from a batch's fields to named losses, metrics and outputs. [TrainStep]
// differentiates the losses' sum and updates the parameters; [TestStep] only computes. Both are steppers of package
// loop and can be called directly. The function runs once per shape of batch, at compilation.
//
// Between GoMLX's x.Checkpoint() and y.StopCheckpoint(), inner values are recomputed for the gradient, to save memory
// (Chen et al. 2016).
package managed
