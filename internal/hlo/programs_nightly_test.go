//go:build nightly

package hlo_test

const programs = 10_000
