// Package plots draws what a run logged and what a model says: the history of a training, confusion matrices, curves of
// classifiers, images with predictions, weights, the network; as SVG, PNG or HTML, and all on a page of a report.
//
//	err := plots.History(history).Save("history.png")
//
// A function makes a [Figure] of data; one that cannot be drawn has an error, which each way to write it gives. Nothing
// is left out without a word: a gap, a class without examples and a curve too many stand in the legend.
//
// Names may hold anything: in files they are text, cut where there is no room. Colours are told apart with any colour
// vision, and what matters is never said by colour alone. The same data gives the same bytes.
//
// Package flaxlike/report makes a [Report] of a model with its history and a test set.
package plots
