//go:build !linux

package mpi

func warnings(*World) []string { return nil }
