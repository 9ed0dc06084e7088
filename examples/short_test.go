//go:build !nightly

package examples

// translation is how TestTranslator runs: sentences of one clause, one layer.
var translation = []string{"-clauses", "1", "-layers", "1", "-steps", "300"}

// exact is its floor.
const exact = 0.95
