//go:build !nightly

package dist_test

const everything = false

// faultTimes is how many times each fault is made.
const faultTimes = 1
