// Package report writes an HTML page about a trained model of package flaxlike ([Run]): its card (data, figures,
// settings, versions), training curves, results on a test set, weights and layers. Results are those of scikit-learn:
// classes have a classification_report, confusion matrices before and after thresholds, and curves; numbers have
// errors and residuals, forecasts their history. The worst examples follow, with the parts of images and the words of
// texts that their answers depend on, and permutation importances. The drawings make a program 7 MB larger: this
// package is separate from flaxlike.
package report
