//go:build nightly

package main

func init() { killedRuns, signalledRuns = 50, 50 }
