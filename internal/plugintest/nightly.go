//go:build nightly

package plugintest

const nightly = true
