//go:build nightly

package main

func init() { killedRuns = 50 }
