//go:build nightly

package flaxlike_test

// seeds are how many models each learning test trains.
const seeds = 3

// steps are how many each of them makes.
const steps = 1500

var maskedPlaces = []int{5, 8, 13}
