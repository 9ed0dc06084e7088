// Package optim builds optimizers from a learning rate and a chain of transformations of the gradients, as optax does.
// Everything runs inside the training program. Give an [Optimizer] to managed.WithOptimizer or to GoMLX's trainer.
// [GoMLX] makes one from GoMLX's.
//
//	optimizer := optim.New(3e-4,
//		optim.Clip{GlobalNorm: 1},
//		optim.Adam{},
//		optim.WeightDecay{Rate: 0.01, Match: optim.RankFrom(2)},
//		optim.ScaleBySchedule(optim.Linear(0, 1, 500).Then(500, optim.Cosine(1, 0, 9500))))
//
// A zero field of a rule takes its default. The rules are checked against optax for 100 steps, to 1e-5 in float32; in
// float64, with parameters trained at different times, to 1e-6.
//
// # Names
//
//	optax                                Keras                            here
//	sgd                                  SGD                              New(rate)
//	sgd(momentum), trace                 SGD(momentum)                    Momentum
//	sgd(momentum, nesterov)              SGD(momentum, nesterov)          Momentum{Nesterov}
//	adam, scale_by_adam                  Adam                             Adam
//	adamw                                AdamW                            Adam, WeightDecay
//	adamax                               Adamax                           Adamax
//	rmsprop, scale_by_rms                RMSprop                          RMSProp
//	adagrad, scale_by_rss                Adagrad                          Adagrad
//	adadelta, scale_by_adadelta          Adadelta                         Adadelta
//	nadam                                Nadam                            Nadam
//	lion                                 Lion                             Lion, WeightDecay
//	lamb                                 Lamb                             LAMB
//	adafactor                            Adafactor                        Adafactor
//	contrib.muon                         Muon                             Muon in Groups
//	clip                                 clipvalue                        Clip
//	clip_by_global_norm                  global_clipnorm                  Clip{GlobalNorm}
//	(clip_by_block_rms)                  clipnorm                         Clip{Norm}
//	scale_by_trust_ratio                                                  TrustRatio
//	add_decayed_weights(mask)            weight_decay,                    WeightDecay{Match}
//	                                     exclude_from_weight_decay
//	MultiSteps                           gradient_accumulation_steps      Accumulate
//	ema (of parameters)                  use_ema                          Average
//	apply_if_finite                                                       SkipNonFinite
//	(jmp, flax: DynamicScale)            LossScaleOptimizer               LossScale
//	(jmp.Policy)                         DTypePolicy                      Policy
//	masked                                                                Masked
//	partition, multi_transform                                            Groups
//	set_to_zero in partition             trainable = False                Frozen
//	chain, scale, scale_by_schedule                                       Chain, Scale, ScaleBySchedule
//	constant_schedule                                                     Constant
//	linear_schedule                                                       Linear
//	polynomial_schedule                  PolynomialDecay                  Polynomial
//	exponential_decay                    ExponentialDecay                 ExponentialDecay
//	exponential_decay(staircase)         ExponentialDecay(staircase)      StepDecay
//	cosine_decay_schedule                CosineDecay                      Cosine
//	sgdr_schedule                        CosineDecayRestarts              CosineRestarts
//	cosine_onecycle_schedule                                              OneCycle
//	                                                                      InverseSqrt
//	piecewise_constant_schedule          PiecewiseConstantDecay           Constant, Schedule.Then
//	join_schedules                                                        Schedule.Then
//
// # State
//
// All state is in variables that are not trainable, with stable names. Snapshots and checkpoints contain them:
//
//	/global_step                         the batches seen, as with GoMLX's optimizers
//	/optimizers/learning_rate            the rate, for the host to set
//	/optimizers/updates                  the steps in which a parameter was updated
//	/optimizers/parameters/<parameter>/count  the updates of a parameter, for bias corrections
//	/optimizers/<link>/<parameter>/count the same after a link that holds back: /optimizers/accumulate/dense/weights/count
//	/optimizers/<link>/<slot>            a number of a link: /optimizers/schedule/count
//	/optimizers/<link>/<parameter>/<slot>  what it keeps for a parameter: /optimizers/lion/dense/weights/momentum
//	/optimizers/groups/<group>/<link>/…  the same inside of a group
//	/AdamOptimizer/…                     Adam's, where GoMLX has them; in a group /AdamOptimizer_groups_<group>_adam/…
//
// The counts of parameters that a link first sees in the same step share one variable, #pack, and so one buffer.
// Checkpoints and managed.State have each count under the name above. While each step updates all of these parameters
// or none, the bias correction is computed once. A step that updates some of them (managed.TrainOnly) makes the other
// steps' programs compile again, once, with a correction per parameter. With 200 parameters, compilation then takes
// more than twice as long.
//
// A parameter's state counts that parameter's updates, as a fresh optax state. A chain's state, such as a schedule's
// count, counts the updates of the optimizer's or the group's chain.
//
// The second link of the same name in a chain is <link>_2; links of other names change no name.
package optim
