//go:build !nightly

package optim_test

// draws is how many cases a law is checked for.
const draws = "40"

// firstLinks are the first links of the chains that are compared with optax in groups.
var firstLinks = []string{"accumulate", "adam", "skip non-finite"}
