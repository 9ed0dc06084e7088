// Package plots draws runs and models as SVG, PNG or HTML: histories, confusion matrices, curves of classifiers,
// images with predictions, weights and networks.
//
//	err := plots.History(history).Save("history.png")
//
// The legend reports omissions. Names are truncated if there is no room. Colours suit any colour vision and never
// carry information alone. Output is deterministic.
package plots
