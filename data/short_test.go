//go:build !nightly

package data

// randomFiles is how many malformed files TestF28_RandomDamage tries.
const randomFiles = 5_000
