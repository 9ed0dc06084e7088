//go:build nightly

package examples

var translation []string

const exact = 0.99

var seeds = []string{"0", "1", "2"}
