//go:build !nightly

package plugintest

const nightly = false
