// Package metrics gathers figures about a model over many batches, inside the graph: means, accuracies, scores of
// classes, areas under curves.
//
// A [Metric] says what is kept from batch to batch (a few accumulators), how a batch changes it, how two such are
// joined, and what figures follow. It holds no values itself. The accumulators are nodes that a caller keeps as it
// likes: as variables that a step updates in place, or as tensors passed in and out:
//
//	acc := metrics.Initial(m, g)                   // before the first batch, and after a reset
//	acc = m.Update(acc, weights, labels, logits)   // a batch; weights may be nil
//	acc = m.Merge(acc, more)                       // what another process gathered
//	for _, v := range m.Compute(acc) { … }         // the figures so far, as float64
//
// An own metric is a type with these four methods, or [MapInputs] over one that is here. A [Collection] is several
// under names.
//
// # Classes
//
// Metrics that compare classes take labels and predictions, each in one of two forms: integers with a class for each
// example, or floats with one more axis, the classes, where the greatest counts (scores, logits, probabilities,
// one-hot). For two classes separated by one probability, [Threshold] makes the integers. For examples that may be of
// several classes [MultiLabel] makes a metric of one that scores classes.
//
// Values are checked too: where an example that counts has a label or prediction that is no class, or a score that is
// NaN, the figure is NaN until the accumulators are reset. To leave such labels out on purpose, as -100 often is, give
// them weight 0: graph.NotEqual(labels, …) is a mask.
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
// Without any example a mean is NaN: a figure that was not measured should not look like one. docs/maintain/parity.md
// lists the differences from the two.
package metrics
