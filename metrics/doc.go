// Package metrics computes metrics over many batches inside the graph.
//
// The caller keeps a [Metric]'s accumulators as variables that a step updates, or as inputs and outputs. [Initial]
// makes or resets them. A custom metric is a type with its methods, or [MapInputs] of a metric here.
//
// # Classes
//
// Metrics of classes take labels and predictions, each as integers with a class per example, or as floats with an
// additional axis of classes (scores, logits, probabilities, one-hot), of which the first maximum counts. For binary
// classes by a probability, use [Threshold]; for examples with several classes, [MultiLabel].
//
// If an example that counts has an invalid label or prediction, or a NaN score, the value is NaN until a reset. To
// exclude labels like -100, give them weight 0: graph.NotEqual(labels, …) is a mask.
//
// # Names
//
// docs/from-keras.md lists Keras's names. Without examples a mean or a score is NaN.
package metrics
