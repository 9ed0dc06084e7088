//go:build !nightly

package loop_test

// modelPrograms is the number of programs that TestModel draws.
const modelPrograms = 1_000
