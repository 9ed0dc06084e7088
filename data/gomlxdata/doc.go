// Package gomlxdata gives GoMLX's datasets to lazo, and lazo's batches to GoMLX's trainer.
package gomlxdata
