//go:build unix

package owners

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestPrivateGroup(t *testing.T) {
	split := func(text string) (all [][]string) {
		for line := range strings.Lines(text) {
			all = append(all, strings.Split(strings.TrimSpace(line), ":"))
		}
		return all
	}
	users := split("root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\nbroken\n")
	groups := split("root:x:0:\nann:x:1000:\nusers:x:100:\nstaff:x:50:\nwheel:x:10:root,ann\nlab:x:20:ann,bob\nbroken\n")
	for gid, want := range map[int]bool{
		1000: true,  // Ann's own
		50:   true,  // no members
		10:   true,  // Ann and root
		100:  false, // Bob's
		20:   false, // Bob is in it too
		77:   false, // not told of here
	} {
		require.Equal(t, want, privateIn(users, groups, gid, 1000), "group %d", gid)
	}
	p := newPlace(t)
	path := p.file("lib/a.so")
	p.mode("lib", 0o770)
	p.user.private = func(string, int) bool { return true }
	_, err := p.user.resolve(path)
	require.NoError(t, err)
	require.False(t, private(path, os.Getgid(), 0), "root has none")
}

// S56: the group of a file with an ACL is not private: the ACL may let other users write to it, and the mode shows the
// ACL's mask as the group's permissions.
func TestPrivateGroup_acl(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("groups are private on Linux alone")
	}
	groups := lines("/etc/group")
	at := slices.IndexFunc(groups, func(g []string) bool {
		gid, err := strconv.Atoi(g[min(2, len(g)-1)])
		return err == nil && privateIn(lines("/etc/passwd"), groups, gid, stranger)
	})
	require.GreaterOrEqual(t, at, 0, "no group of /etc/group is without other members")
	gid, err := strconv.Atoi(groups[at][2])
	require.NoError(t, err)
	path := newPlace(t).file("a")
	require.True(t, private(path, gid, stranger))
	acl := binary.LittleEndian.AppendUint32(nil, 2) // the version; then tag, permissions and id of each entry
	for _, entry := range [][3]uint32{{1, 6, 0}, {2, 6, other}, {4, 6, 0}, {16, 6, 0}, {32, 0, 0}} {
		acl = binary.LittleEndian.AppendUint32(acl, entry[0]|entry[1]<<16)
		acl = binary.LittleEndian.AppendUint32(acl, entry[2])
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", acl, 0); errors.Is(err, unix.ENOTSUP) {
		t.Skip("the file system has no ACLs")
	} else {
		require.NoError(t, err)
	}
	require.False(t, private(path, gid, stranger))
}
