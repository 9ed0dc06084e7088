//go:build unix

package owners

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// private reports whether only the user and root are in a group, as in per-user groups (umask 002), by local files. An
// unknown group, or a file with an ACL, is not.
func private(path string, gid int, uid uint32) bool {
	if runtime.GOOS != "linux" || uid == 0 { // other systems have further sources
		return false
	}
	if n, err := unix.Lgetxattr(path, "system.posix_acl_access", nil); err == nil && n > 0 {
		return false
	}
	return privateIn(lines("/etc/passwd"), lines("/etc/group"), gid, uid)
}

func privateIn(users, groups [][]string, gid int, uid uint32) bool {
	trusted := map[string]bool{}
	for _, u := range users { // name:password:uid:gid:…
		if len(u) < 4 {
			continue
		}
		id, err := strconv.ParseUint(u[2], 10, 32)
		if err == nil && (id == 0 || uint32(id) == uid) {
			trusted[u[0]] = true
		} else if u[3] == strconv.Itoa(gid) {
			return false
		}
	}
	found := false
	for _, g := range groups { // name:password:gid:member,member
		if len(g) < 4 || g[2] != strconv.Itoa(gid) {
			continue
		}
		found = true
		if slices.ContainsFunc(strings.Split(g[3], ","), func(name string) bool { return name != "" && !trusted[name] }) {
			return false
		}
	}
	return found
}

func lines(file string) (fields [][]string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		fields = append(fields, strings.Split(strings.TrimSpace(line), ":"))
	}
	return fields
}
