//go:build nightly

package files

const randomFiles = 1_000_000
