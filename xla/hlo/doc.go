// Package hlo lowers GoMLX graphs to StableHLO text.
//
// A [Builder] is a GoMLX compute.Builder. It writes no code for a device: what was built becomes a [Module], and the
// function given to [New] compiles it. The package knows nothing of PJRT.
//
// Read builder.go first, then function.go and module.go. The operations are grouped by topic: elementwise.go,
// complex.go, shape.go, index.go, dot.go, convolution.go, erf.go, reduce.go, window.go, norm.go, attention.go, fft.go,
// random.go, bits.go, collective.go; those that take functions are in function.go. repeat.go makes a module that runs
// another one's function many times, single.go runs operations one by one.
package hlo
