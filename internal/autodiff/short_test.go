//go:build !nightly

package autodiff_test

// draws is how many layouts a law is checked for.
const draws = "30"
