//go:build nightly

package loop_test

const modelPrograms = 10_000
