// Package losses has losses as graph functions of labels and a model's output, with a value per example, element or
// label. A custom step reports these values:
//
//	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
//
// [Named] has the same functions by Keras's names. Losses panic with an error if labels and output do not fit.
package losses
