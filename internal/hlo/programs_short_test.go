//go:build !nightly

package hlo_test

// programs is the number of random programs; with -tags nightly 10,000.
const programs = 250
