//go:build nightly

package dist

const strangerConnections = 10_000
