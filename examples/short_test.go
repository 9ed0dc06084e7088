//go:build !nightly

package examples

// translation has the flags of TestTranslator: sentences of one clause, one layer.
var translation = []string{"-clauses", "1", "-layers", "1", "-steps", "300"}

// exact is its floor.
const exact = 0.95

// seeds are those of TestFit and TestTabular.
var seeds = []string{"0"}
