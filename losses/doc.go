// Package losses has losses as functions of a graph, from labels and a model's output to a value for each example, or
// for each of its numbers or labels. An own step reports such values, whose mean is taken over the examples that count:
//
//	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
//
// Package flaxlike and [Named] have the same functions by Keras's names. Each panics with an error where labels and
// output do not fit, as the functions of a graph do.
package losses
