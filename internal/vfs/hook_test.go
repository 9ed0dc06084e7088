package vfs_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/vfs"
)

func TestFail(t *testing.T) {
	for _, c := range []struct {
		name string
		rule vfs.Rule
		want []bool // of five writes to a, b, c, d, e
	}{
		{"the second", vfs.Rule{Op: vfs.OpCreate, N: 2}, []bool{true, false, true, true, true}},
		{"from the second on", vfs.Rule{Op: vfs.OpCreate, N: 2, On: true}, []bool{true, false, false, false, false}},
		{"a name", vfs.Rule{Op: vfs.OpSync, Name: "[cd]", N: 1}, []bool{true, true, false, true, true}},
		{"any call", vfs.Rule{N: 5}, []bool{true, false, true, true, true}},
		{"close", vfs.Rule{Op: vfs.OpClose, Name: "e", N: 1}, []bool{true, true, true, true, false}},
		{"none of this name", vfs.Rule{Op: vfs.OpClose, Name: "f", N: 1, On: true}, []bool{true, true, true, true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rule.Err = syscall.ENOSPC
			counted := vfs.Count(&vfs.Mem{})
			fsys := vfs.Fail(counted, c.rule)
			var got []bool
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				err := write(fsys, name, "text")
				if err != nil {
					require.ErrorIs(t, err, syscall.ENOSPC)
					require.ErrorContains(t, err, name)
				}
				got = append(got, err == nil)
			}
			require.Equal(t, c.want, got)
			require.Zero(t, counted.Handles(), "a close that fails closes")
		})
	}
}

func TestFailedWriteLeavesHalf(t *testing.T) {
	m := &vfs.Mem{}
	require.Error(t, write(vfs.Fail(m, vfs.Rule{Op: vfs.OpWrite, N: 1, Err: syscall.ENOSPC}), "a", "12345678"))
	text, err := read(m, "a")
	require.NoError(t, err)
	require.Equal(t, "1234", text)
}

// Every method asks the hook first, by its own name.
func TestHookSeesEachCall(t *testing.T) {
	var seen []vfs.Call
	fsys := vfs.Hook(&vfs.Mem{}, func(c vfs.Call) error { seen = append(seen, c); return nil })
	require.NoError(t, fsys.Mkdir("d"))
	require.NoError(t, write(fsys, "d/a", "x"))
	_, err := read(fsys, "d/a")
	require.NoError(t, err)
	require.NoError(t, fsys.Rename("d/a", "b"))
	require.NoError(t, fsys.SyncDir("."))
	_, err = fsys.ReadDir(".")
	require.NoError(t, err)
	_, err = fsys.Stat("b")
	require.NoError(t, err)
	require.NoError(t, fsys.Remove("b"))
	l, err := fsys.Lock("l", "")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, fsys.Close())
	require.Equal(t, []vfs.Call{
		{vfs.OpMkdir, "d"},
		{vfs.OpCreate, "d/a"}, {vfs.OpWrite, "d/a"}, {vfs.OpSync, "d/a"}, {vfs.OpClose, "d/a"},
		{vfs.OpOpen, "d/a"}, {vfs.OpStat, "d/a"}, {vfs.OpRead, "d/a"}, {vfs.OpClose, "d/a"},
		{vfs.OpRename, "d/a"}, {vfs.OpSyncDir, "."}, {vfs.OpReadDir, "."}, {vfs.OpStat, "b"}, {vfs.OpRemove, "b"}, {vfs.OpLock, "l"},
	}, seen)
}
