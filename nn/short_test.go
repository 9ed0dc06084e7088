//go:build !nightly

package nn_test

// eager compiles a program per operation; the tests of ops have a scan under it.
const eager = false

// trajectoriesTried are the models that TestTrajectories trains, in float64 only. nil means all, in both dtypes.
var trajectoriesTried = []string{"cnn", "deq", "wgan-gp"}
