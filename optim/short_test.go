//go:build !nightly

package optim_test

// draws is the number of cases for which a law is checked.
const draws = "40"

// firstLinks are the first links of the chains that are compared with optax in groups.
var firstLinks = []string{"accumulate", "adam", "skip non-finite"}

// linksApart: each of them is combined with every fourth link.
const linksApart = 4
