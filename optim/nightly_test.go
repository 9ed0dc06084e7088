//go:build nightly

package optim_test

import (
	"maps"
	"slices"
)

// draws is how many cases a law is checked for.
const draws = "2000"

// firstLinks are the first links of the chains that are compared with optax in groups: all.
var firstLinks = slices.Sorted(maps.Keys(links))
