// Package flaxlike is a model with Fit, Evaluate and Predict, similar to Keras and Elegy.
//
// A [Model] wraps a managed.State, and its Fit a train.Loop. Layers are those of package nn, and GoMLX's functions as
// nn.Func. Callbacks are any loop.Option.
//
// docs/from-keras.md and docs/from-ciclo.md list the names and arguments of Keras and Ciclo.
//
// Fit checks labels, sample weights, indices of an Embedding, and that float inputs are finite: for a set before the
// first step, for batches before each step.
package flaxlike
