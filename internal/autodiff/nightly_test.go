//go:build nightly

package autodiff_test

// draws is the number of layouts for which a law is checked.
const draws = "1000"
