package main

import "golang.org/x/sys/unix"

func hostMemory() (total, free uint64) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0, 0
	}
	unit := uint64(info.Unit)
	return uint64(info.Totalram) * unit, (uint64(info.Freeram) + uint64(info.Bufferram)) * unit
}
