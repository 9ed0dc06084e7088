//go:build !nightly

package probe_test

const flips = 20

func flipSeed() uint64 { return 1 }
