// Package hlo lowers GoMLX graphs to StableHLO text.
//
// A [Builder] implements GoMLX's compute.Builder. Its Compile passes a [Module] to the function given to [New].
//
// Read builder.go first, then function.go (calls, loops, branches) and module.go.
package hlo
