//go:build !nightly

package nn_test

// seeds are how many models each learning test trains.
const seeds = 1

// steps are how many each of them makes.
const steps = 750

// eager takes a program for each operation; flow's tests have a scan under it.
const eager = false
