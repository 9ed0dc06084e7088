//go:build !nightly

package hlo_test

// programs is how many random programs are run; with -tags nightly 10,000.
const programs = 500
