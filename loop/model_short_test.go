//go:build !nightly

package loop_test

// modelPrograms is the number of programs that TestModel draws.
const modelPrograms = 1_000

// bucketsApart: TestTraces runs every fifth bucket of its programs.
const bucketsApart = 5
