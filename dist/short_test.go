//go:build !nightly

package dist_test

const everything = false

// faultTimes is the number of times that each fault is made.
const faultTimes = 1
