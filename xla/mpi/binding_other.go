//go:build !linux

package mpi

// warnings returns none where processes are not bound to processors.
func warnings(*World) []string { return nil }
