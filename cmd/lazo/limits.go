package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// noLimit is from where on a limit of memory is none: the systems have several large numbers for it.
const noLimit = 1 << 60

// ownLimit is a limit of this process.
type ownLimit struct {
	bytes uint64
	name  string
}

// limits describes up to how much memory this process may take, "" for as much as there is.
func limits() string {
	var found []string
	for _, of := range ownLimits() {
		if of.bytes < noLimit {
			found = append(found, fmt.Sprintf("%.1f GiB %s", gib(of.bytes), of.name))
		}
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	if limit, file := cgroupLimit(string(groups), "/sys/fs/cgroup"); file != "" {
		found = append(found, fmt.Sprintf("%.1f GiB (%s): the kernel kills what takes more", gib(limit), file))
	}
	return strings.Join(found, "; ")
}

// cgroupLimit is the least limit of memory of the groups that the text of /proc/self/cgroup names, and of those above
// them, and the file that says so, "" for none. In a container the names may be those of the host: then the root's
// holds.
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
			limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // "max" is none
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
