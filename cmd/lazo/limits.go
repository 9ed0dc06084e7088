package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Systems mean no limit by several values from noLimit.
const noLimit = 1 << 60

type ownLimit struct {
	bytes uint64
	name  string
}

func limits() string {
	var found []string
	for _, of := range ownLimits() {
		if of.bytes < noLimit {
			found = append(found, fmt.Sprintf("%.1f GiB %s", gib(of.bytes), of.name))
		}
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	if limit, file := cgroupLimit(string(groups), "/sys/fs/cgroup"); file != "" {
		found = append(found, fmt.Sprintf("%.1f GiB (%s): the kernel kills processes above it", gib(limit), file))
	}
	return strings.Join(found, "; ")
}

// The lowest memory limit of the groups in the text of /proc/self/cgroup and their parents, and its file. In a
// container without those groups the root's applies.
func cgroupLimit(groups, mount string) (least uint64, file string) {
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers of version 1, path
		if len(parts) != 3 {
			continue
		}
		base, name := mount, "memory.max"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			base, name = filepath.Join(mount, parts[1]), "memory.limit_in_bytes"
		}
		for group := filepath.Clean("/" + parts[2]); ; group = filepath.Dir(group) {
			at := filepath.Join(base, group, name)
			text, _ := os.ReadFile(at)
			limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // "max" means none
			if err == nil && limit < noLimit && (file == "" || limit < least) {
				least, file = limit, at
			}
			if group == "/" {
				break
			}
		}
	}
	return least, file
}
