//go:build unix

package main

import "golang.org/x/sys/unix"

func ownLimits() (all []ownLimit) {
	for _, of := range []struct {
		resource int
		name     string
	}{{unix.RLIMIT_AS, "of addresses (ulimit -v)"}, {unix.RLIMIT_DATA, "of data (ulimit -d)"}} {
		var limit unix.Rlimit
		if unix.Getrlimit(of.resource, &limit) == nil {
			all = append(all, ownLimit{limit.Cur, of.name})
		}
	}
	return all
}
