// Package selection chooses among models: a [Search] finds the parameters with which a model trains best,
// [CrossValidate] estimates how well a way of training predicts, and an [Ensemble] averages several models'
// predictions.
package selection
