//go:build nightly

package examples

var translation []string

const exact = 0.99
