// Package flaxlike is a model with Fit, Evaluate and Predict, similar to Keras and Elegy:
//
//	model, err := flaxlike.New(ctx, nn.Sequential{
//		nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dense{Units: 10}},
//		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.InstallIfMissing(nil))
//	defer model.Close()
//	history, err := model.Fit(ctx, training, flaxlike.Fit{Epochs: 20, Validation: test})
//	figures, err := model.Evaluate(ctx, test)
//
// A [Model] wraps a managed.State, and its Fit a train.Loop. Layers are those of package nn, and GoMLX's functions as
// nn.Func. Callbacks are any loop.Option.
//
// docs/from-keras.md and docs/from-ciclo.md list the names and arguments of Keras and Ciclo with those here.
//
// In Fit callbacks count epochs.
//
// Fit checks labels, sample weights, indices of an Embedding, and that float inputs are finite: for a set before the
// first step, for batches before each step.
package flaxlike
