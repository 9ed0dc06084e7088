//go:build !nightly

package files

// randomFiles is the number of malformed files in TestF28_RandomDamage.
const randomFiles = 5_000
