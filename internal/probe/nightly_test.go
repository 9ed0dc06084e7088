//go:build nightly

package probe_test

import "math/rand/v2"

const flips = 100

func flipSeed() uint64 { return rand.Uint64() }
