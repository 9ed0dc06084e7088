//go:build nightly && unix

package loop_test

func init() { signalCount = 50 }
