//go:build !nightly

package data

// randomFiles is the number of malformed files in TestF28_RandomDamage.
const randomFiles = 5_000
