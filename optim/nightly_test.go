//go:build nightly

package optim_test

import (
	"maps"
	"slices"
)

// draws is the number of cases for which a law is checked.
const draws = "2000"

// firstLinks are the first links of the chains that are compared with optax in groups: all.
var firstLinks = slices.Sorted(maps.Keys(links))

const linksApart = 1
