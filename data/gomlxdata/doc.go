// Package gomlxdata converts between GoMLX's datasets and lazo's batches.
package gomlxdata
