// Package report writes what is known of a trained model of package flaxlike on one page: its card (data, figures,
// settings, versions, time), the curves of its training, how it does on a test set, its weights and its layers.
//
//	err := report.Run{Model: model, History: history, Test: test, Classes: names}.Save(ctx, "report")
//
// The page is report/report.html; it needs nothing from elsewhere. The drawings are those of package plots, which makes
// other pages too. It is a package of its own because the library that draws makes a program 7 MB larger.
package report
