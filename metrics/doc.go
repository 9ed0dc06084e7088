// Package metrics computes metrics over many batches inside the graph: means, accuracies, scores of classes, areas
// under curves.
//
// A [Metric] has no state. The caller keeps its accumulators, graph nodes, as variables that a step updates or as
// inputs and outputs:
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
// # Names in Keras and clu
//
//	here                        Keras                                        clu
//	Mean                        Mean                                         Average
//	Sum                         Sum                                          -
//	StandardDeviation           -                                            Std
//	Min, Max                    -                                            -
//	Last                        -                                            LastValue
//	Accuracy                    Accuracy, CategoricalAccuracy,               Accuracy
//	                            SparseCategoricalAccuracy
//	Accuracy over Threshold     BinaryAccuracy                               -
//	TopK                        TopKCategoricalAccuracy,                     -
//	                            SparseTopKCategoricalAccuracy
//	CrossEntropy, Perplexity    CategoricalCrossentropy,                     -
//	                            SparseCategoricalCrossentropy
//	ConfusionMatrix             -                                            -
//	Precision, Recall           Precision, Recall                            -
//	FBeta                       F1Score, FBetaScore                          -
//	Specificity, ClassScores    -                                            -
//	IoU, MeanIoU                IoU, BinaryIoU, OneHotIoU, MeanIoU,          -
//	                            OneHotMeanIoU
//	AUC, AveragePrecision       AUC(curve="ROC"), AUC(curve="PR")            -
//	BestAt                      PrecisionAtRecall and the three like it      -
//	Pearson, Concordance        PearsonCorrelation, ConcordanceCorrelation   -
//	MeanSquaredError, Root…     MeanSquaredError, RootMeanSquaredError       -
//	MeanAbsoluteError, R2       MeanAbsoluteError, R2Score                   -
//	CosineSimilarity            CosineSimilarity                             -
//	MapInputs                   MeanMetricWrapper                            Metric.from_fun
//	Entry.Inputs                -                                            Metric.from_output
//	Collection                  -                                            Collection
//	Update, Merge, Reduce       update_state, merge_state                    from_model_output, merge, reduce
//	Initial, Compute            reset_state, result                          empty, compute
//
// Without examples a mean or a score is NaN. docs/maintain/parity.md lists the differences from Keras and clu.
package metrics
