//go:build nightly

package optim_test

// draws is how many cases a law is checked for.
const draws = "2000"
