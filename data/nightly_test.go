//go:build nightly

package data

const randomFiles = 1_000_000
