// Package decision fits how the outputs of a trained classifier become probabilities and classes: a [Calibration] of
// its logits, and a [Threshold] of each class for an [Aim]. flaxlike.Model has both as Calibrate and ChooseThresholds.
package decision
