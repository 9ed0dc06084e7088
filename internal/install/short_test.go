//go:build !nightly

package install

const kills = 16
