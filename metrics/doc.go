// Package metrics computes metrics over many batches inside the graph: means, accuracies, scores of classes, areas
// under curves.
//
// The caller keeps a [Metric]'s accumulators, graph nodes, as variables that a step updates or as inputs and outputs:
//
//	acc := metrics.Initial(m, g)                   // before the first batch, and after a reset
//	acc = m.Update(acc, weights, labels, logits)   // a batch; weights may be nil
//	acc = m.Merge(acc, more)                       // what another process gathered
//	for _, v := range m.Compute(acc) { … }         // the figures so far, as float64
//
// A custom metric is a type with these methods, or [MapInputs] of a metric here.
//
// # Classes
//
// Metrics of classes take labels and predictions, each as integers with a class per example, or as floats with an
// additional axis of classes (scores, logits, probabilities, one-hot), of which the maximum counts. For binary classes
// by a probability, use [Threshold]; for examples with several classes, [MultiLabel].
//
// If an example that counts has a label or prediction that is no class, or a NaN score, the value is NaN until the
// accumulators are reset. To exclude labels such as -100, give them weight 0: graph.NotEqual(labels, …) is a mask.
//
// # Names
//
// docs/from-keras.md lists Keras's names, docs/maintain/parity.tsv those of clu, with the differences from both.
// Without examples a mean or a score is NaN.
package metrics
