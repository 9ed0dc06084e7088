//go:build !nightly

package loop_test

// modelPrograms is how many programs TestModel draws.
const modelPrograms = 1_000
