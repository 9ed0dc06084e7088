// Package flaxlike is a model with Fit, Evaluate and Predict, similar to Keras and Elegy:
//
//	model, err := flaxlike.New(ctx, nn.Sequential{
//		nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dense{Units: 10}},
//		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.InstallIfMissing(nil))
//	defer model.Close()
//	history, err := model.Fit(ctx, training, flaxlike.Fit{Epochs: 20, Validation: test})
//	figures, err := model.Evaluate(ctx, test)
//
// A [Model] is a thin layer over managed.State. Its Fit is a train.Loop, which train.Of makes of a model too. Layers
// are those of package nn, and GoMLX's functions as nn.Func. Each loop.Option can be a callback.
//
// # Names in Keras and Ciclo
//
//	Keras                          Ciclo                    here
//	compile(loss, metrics, …)      create_flax_state        New, WithLoss, WithMetrics, WithOptimizer
//	loss_weights                                            Loss.Weight
//	weighted_metrics                                        Metric.Weighted
//	mixed_precision, auto_scale_…                           WithPolicy
//	run_eagerly, distribution      strategy                 WithStrategy
//	steps_per_execution                                     automatic, see loop.Stepper
//	fit                            train_loop               Fit, FitBatches
//	epochs, initial_epoch          stop                     Fit.Epochs, Fit.InitialEpoch
//	validation_data, _split, …     test_dataset             Fit.Validation, Validations, ValidationSplit, …
//	class_weight, sample_weight    sample_weight            WithClassWeights, WithSampleWeights
//	callbacks                      callbacks                Fit.Callbacks
//	BackupAndRestore,              checkpoint               checkpoint.Resume among Fit.Callbacks
//	ModelCheckpoint
//	evaluate, predict              test_loop, predict_loop  Evaluate, Predict, EvaluateBatches, PredictBatches
//	softmax, argmax of predict                              Prediction.Probabilities, Prediction.Classes
//	KerasTuner                                              Search, CrossValidate, Ensemble; Calibrate, ChooseThresholds
//	train_on_batch, …              train_step, …            TrainStep, TestStep, Answer, ResetStep
//	summary                                                 Summary
//	save, load_model                                        Save, Open
//	load_weights                                            Load, LoadSome, CopyFrom
//	export                                                  Export
//
// In Fit the unit is the epoch: a row of the history has means over its examples, and callbacks.StopEarly,
// callbacks.KeepBest, callbacks.OnBest and callbacks.ReduceOnPlateau count epochs.
//
// Fit checks labels, sample weights, indices of an Embedding, and that float inputs are finite: of a set before the
// first step, of a stream of batches before each step.
//
// Fit logs loss, accuracy, <output>_loss, learning_rate and epoch. The figures of a validation set begin with its name:
// val_loss. TrainStep and TestStep log losses and, as avg_<loss>, their means since the last reset. The figures of a
// test in a train.Loop end with the name of the test: loss_val.
package flaxlike
