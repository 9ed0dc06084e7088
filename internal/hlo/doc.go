// Package hlo lowers GoMLX graphs to StableHLO text.
//
// A [Builder] implements GoMLX's compute.Builder. Its Compile passes a [Module] to the function given to [New].
//
// Read builder.go first, then function.go (calls, loops, branches) and module.go. Other files have operations, except
// sharding.go and exchange.go (several devices), apart.go (large constants), trace.go (traced bodies), repeat.go (loops
// over a module), single.go (eager).
package hlo
