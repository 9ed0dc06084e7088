//go:build nightly

package autodiff

// draws is how many layouts a law is checked for.
const draws = "1000"
