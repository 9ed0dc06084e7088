// Package optim builds optimizers from a learning rate and a chain of transformations of the gradients, as optax. A
// zero field of a rule takes its default. Give an [Optimizer] to managed.WithOptimizer or to GoMLX's trainer.
//
// # Names
//
// Rules and schedules have optax's names, like [RMSProp] for rmsprop or scale_by_rms, except these (docs/from-keras.md
// has Keras's):
//
//	sgd                                  New(rate)
//	sgd(momentum, nesterov), trace       Momentum
//	adamw, lion                          Adam or Lion, WeightDecay
//	scale_by_rss                         Adagrad
//	contrib.muon                         Muon in Groups
//	clip_by_global_norm                  Clip{GlobalNorm}
//	(clip_by_block_rms)                  Clip{Norm}
//	add_decayed_weights(mask)            WeightDecay{Match}
//	MultiSteps                           Accumulate
//	ema (of parameters)                  Average
//	add_noise                            Noise
//	apply_if_finite                      SkipNonFinite
//	(jmp, flax: DynamicScale)            LossScale
//	(jmp.Policy)                         Policy
//	partition, multi_transform           Groups
//	set_to_zero in partition             Frozen
//	exponential_decay(staircase)         StepDecay
//	sgdr_schedule                        CosineRestarts
//	cosine_onecycle_schedule             OneCycle
//	piecewise_constant_schedule          Constant, Schedule.Then
//	join_schedules                       Schedule.Then
//
// # State
//
// All state is in non-trainable variables, with permanent names:
//
//	/global_step                         the batches seen, as with GoMLX's optimizers
//	/optimizers/learning_rate            the rate, for the host to set
//	/optimizers/updates                  the steps in which a parameter was updated
//	/optimizers/parameters/<parameter>/count  the updates of a parameter
//	/optimizers/<link>/<parameter>/count the same after a link that holds back: /optimizers/accumulate/dense/weights/count
//	/optimizers/<link>/<slot>            a number of a link: /optimizers/schedule/count
//	/optimizers/<link>/<parameter>/<slot>  its state of a parameter: /optimizers/lion/dense/weights/momentum
//	/optimizers/groups/<group>/<link>/…  the same inside of a group
//	/AdamOptimizer/…                     Adam's, where GoMLX has them; in a group /AdamOptimizer_groups_<group>_adam/…
//
// The counts of parameters that a link first sees in the same step share one variable, #pack. Checkpoints and
// managed.State have each count under the name above. After the first step that updates only some of these parameters
// (managed.TrainOnly), the other steps compile again, once.
//
// A parameter's state counts that parameter's updates, as a fresh optax state; a chain's state, like a schedule's, the
// updates of the chain.
//
// A chain's second link of a name is <link>_2.
package optim
