// Package report writes an HTML page about a trained model of package flaxlike: its card (data, figures, settings,
// versions, time), training curves, results on a test set, weights and layers.
//
//	err := report.Run{Model: model, History: history, Test: test, Classes: names}.Save(ctx, "report")
//
// The page, report/report.html, needs no other file. The drawings of package metrics/plots make a program 7 MB larger,
// so this package is separate from flaxlike.
package report
