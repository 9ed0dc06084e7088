//go:build nightly

package install

const kills = 500
