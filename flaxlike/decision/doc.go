// Package decision fits how a trained classifier's outputs become probabilities and classes: a [Calibration] of its
// logits, and a [Threshold] of each class for an [Aim].
package decision
