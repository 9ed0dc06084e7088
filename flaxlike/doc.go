// Package flaxlike is a model with Fit, Evaluate and Predict, similar to Keras and Elegy:
//
//	model, err := flaxlike.New(ctx, nn.Sequential{
//		nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dense{Units: 10}},
//		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.InstallIfMissing(nil))
//	defer model.Close()
//	history, err := model.Fit(ctx, training, flaxlike.Fit{Epochs: 20, Validation: test})
//	figures, err := model.Evaluate(ctx, test)
//
// A [Model] is a layer over managed.State, and its Fit a train.Loop. Layers are those of package nn, and GoMLX's
// functions as nn.Func. Callbacks are any loop.Option.
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
// In Fit the unit is the epoch, also of callbacks such as callbacks.StopEarly.
//
// Fit checks labels, sample weights, indices of an Embedding, and that float inputs are finite: for a set before the
// first step, for batches before each step.
//
// In a train.Loop the figures of a test end with its name: loss_val.
package flaxlike
