//go:build nightly

package nn_test

// seeds are how many models each learning test trains.
const seeds = 3

// steps are how many each of them makes.
const steps = 1500

const eager = true
