//go:build nightly

package loop_test

const modelPrograms = 10_000

const bucketsApart = 1
