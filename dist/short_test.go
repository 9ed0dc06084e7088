//go:build !nightly

package dist_test

const everything = false
