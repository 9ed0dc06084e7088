//go:build !nightly

package nn_test

// eager takes a program for each operation; flow's tests have a scan under it.
const eager = false

// trajectoriesTried are the models that TestTrajectories trains, in float64 alone; nil is all, in both types.
var trajectoriesTried = []string{"cnn", "deq", "wgan-gp"}
