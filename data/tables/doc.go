// Package tables reads CSV files, and prepares tables of numbers, texts and missing values for a model.
//
// A [Preparation], which [Fit] makes of the training data, converts a table ([Format.Texts]) to numbers by rules for
// its [Columns]. A [Scaling] scales an array's columns.
package tables
