// Package report writes an HTML page about a trained model of package flaxlike ([Run]): its card (data, figures,
// settings, versions, time), training curves, results on a test set, weights and layers. The drawings of package
// metrics/plots make a program 7 MB larger: this package is separate from flaxlike.
package report
