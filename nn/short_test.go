//go:build !nightly

package nn_test

// eager takes a program for each operation; flow's tests have a scan under it.
const eager = false
