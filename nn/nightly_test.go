//go:build nightly

package nn_test

const eager = true

var trajectoriesTried []string
