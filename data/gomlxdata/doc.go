// Package gomlxdata converts GoMLX's datasets to lazo's batches, and lazo's batches to GoMLX's datasets.
package gomlxdata
