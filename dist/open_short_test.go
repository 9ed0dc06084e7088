//go:build !nightly

package dist

const strangerConnections = 300
