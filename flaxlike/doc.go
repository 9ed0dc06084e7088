// Package flaxlike is a model with Fit, for those who come from Keras or Elegy:
//
//	model, err := flaxlike.New(ctx, nn.Sequential{
//		nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dense{Units: 10}},
//		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.InstallIfMissing(nil))
//	defer model.Close()
//	history, err := model.Fit(ctx, training, flaxlike.Fit{Epochs: 20, Validation: test})
//	figures, err := model.Evaluate(ctx, test)
//
// It is a thin layer. A [Model] has a managed.State and the steps as methods, and its Fit is a train.Loop: train.Of
// makes the same loop of a model, each loop.Option is a callback, layers are those of package nn, and GoMLX's functions
// are layers as nn.Func. So a program can step down a level at any time.
//
// # Names in Keras and Ciclo
//
//	Keras                          Ciclo                    here
//	compile(loss, metrics, …)      create_flax_state        New, WithLoss, WithMetrics, WithOptimizer
//	loss_weights                                            Loss.Weight
//	weighted_metrics                                        Metric.Weighted
//	mixed_precision, auto_scale_…                            WithPolicy
//	run_eagerly, distribution      strategy                 WithStrategy
//	steps_per_execution                                     automatic, see loop.Stepper
//	fit                            train_loop               Fit, FitBatches
//	epochs, initial_epoch          stop                     Fit.Epochs, Fit.InitialEpoch
//	validation_data, _split, …     test_dataset             Fit.Validation, Validations, ValidationSplit, …
//	class_weight, sample_weight    sample_weight            WithClassWeights, WithSampleWeights
//	callbacks                      callbacks                Fit.Callbacks
//	BackupAndRestore,              checkpoint               Fit.Checkpoints, Fit.CheckpointEvery
//	ModelCheckpoint
//	evaluate, predict              test_loop, predict_loop  Evaluate, Predict, EvaluateBatches, PredictBatches
//	softmax, argmax of predict                              Probabilities, Classes, …Of outputs; PredictOne
//	KerasTuner                                              Search, CrossValidate, Ensemble; Calibrate, ChooseThresholds
//	train_on_batch, …              train_step, …            TrainStep, TestStep, Answer, ResetStep
//	summary                                                 Summary
//	save, load_model                                        Save, Open
//	load_weights                                            Load, LoadSome, CopyFrom
//	export                                                  Export
//
// In Fit the unit is the epoch: a row of the history has means over its examples, and what follows an entry
// (callbacks.StopEarly, callbacks.KeepBest, callbacks.OnBest, callbacks.ReduceOnPlateau) counts epochs. Labels, sample
// weights, the integers of an Embedding and inputs of floats, which must be finite, are looked at before the first
// step, those of a stream of batches before each.
//
// Fit logs loss, accuracy, <output>_loss, learning_rate and epoch. The names of the figures of a set to validate on
// begin with the name of the set: val_loss. TrainStep and TestStep log losses and, as avg_<loss>, their means since the
// last reset; names of a test of a train.Loop end with the name of the test: loss_val.
package flaxlike
