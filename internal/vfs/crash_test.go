package vfs_test

import (
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// tree is all that a file system holds, a folder as its name with a slash.
func tree(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	for _, n := range names {
		name := strings.TrimPrefix(dir+"/"+n, "./")
		info, err := fsys.Stat(name)
		require.NoError(t, err)
		if info.IsDir() {
			all[name+"/"] = ""
			for k, v := range tree(t, fsys, name) {
				all[k] = v
			}
			continue
		}
		all[name], err = read(fsys, name)
		require.NoError(t, err)
	}
	return all
}

func TestCrash(t *testing.T) {
	type all = map[string]string
	must := func(err error) { require.NoError(t, err) }
	dirty := func(m *vfs.Mem, name, text string) {
		f, err := m.Create(name)
		must(err)
		_, err = f.Write([]byte(text))
		must(err)
		must(f.Close())
	}
	for _, c := range []struct {
		name       string
		do         func(*vfs.Mem)
		lost, kept all
	}{
		{"nothing done", func(*vfs.Mem) {}, all{}, all{}},
		{"a file without the name", func(m *vfs.Mem) { must(write(m, "a", "x")) }, all{}, all{"a": "x"}},
		{"a name without the file", func(m *vfs.Mem) { dirty(m, "a", "x"); must(m.SyncDir(".")) }, all{"a": ""}, all{"a": "x"}},
		{"both", func(m *vfs.Mem) { must(write(m, "a", "x")); must(m.SyncDir(".")) }, all{"a": "x"}, all{"a": "x"}},
		{"renamed", func(m *vfs.Mem) {
			must(write(m, "a", "x"))
			must(m.SyncDir("."))
			must(m.Rename("a", "b"))
		}, all{"a": "x"}, all{"b": "x"}},
		{"removed", func(m *vfs.Mem) {
			must(write(m, "a", "x"))
			must(m.SyncDir("."))
			must(m.Remove("a"))
		}, all{"a": "x"}, all{}},
		{"a folder that was renamed before its names were synced", func(m *vfs.Mem) {
			must(m.Mkdir("d"))
			must(write(m, "d/a", "x"))
			must(m.Rename("d", "e"))
			must(m.SyncDir("."))
		}, all{"e/": ""}, all{"e/": "", "e/a": "x"}},
		{"half written", func(m *vfs.Mem) {
			f, err := m.Create("a")
			must(err)
			_, err = f.Write([]byte("x"))
			must(err)
			must(f.Sync())
			must(m.SyncDir("."))
			_, err = f.Write([]byte("y"))
			must(err)
		}, all{"a": "x"}, all{"a": "xy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &vfs.Mem{}
			c.do(m)
			random := rand.New(rand.NewPCG(1, 2))
			require.Equal(t, c.lost, tree(t, m.Crash(0, random), "."))
			require.Equal(t, c.kept, tree(t, m.Crash(1, random), "."))
			require.Equal(t, c.kept, tree(t, m, "."), "the original goes on")
			again := m.Crash(0.5, rand.New(rand.NewPCG(7, 7)))
			require.Equal(t, tree(t, again, "."), tree(t, m.Crash(0.5, rand.New(rand.NewPCG(7, 7))), "."), "a seed gives the same crash")
			require.Equal(t, tree(t, again, "."), tree(t, again.Crash(0, random), "."), "what is found after a crash is durable")
		})
	}
}

func TestCrashInBetweenTearsFiles(t *testing.T) {
	m := &vfs.Mem{}
	f, err := m.Create("a")
	require.NoError(t, err)
	require.NoError(t, m.SyncDir("."))
	text := strings.Repeat("x", 4000)
	_, err = f.Write([]byte(text))
	require.NoError(t, err)
	short, torn := 0, 0
	for seed := range uint64(1000) {
		got, err := read(m.Crash(0.5, rand.New(rand.NewPCG(seed, 0))), "a")
		require.NoError(t, err)
		switch {
		case len(got) < len(text):
			short++
		case got != text:
			torn++
		}
		require.LessOrEqual(t, len(got), len(text))
	}
	require.Positive(t, short)
	t.Logf("of 1000 crashes %d cut the file, %d tore a whole one", short, torn)
}

func TestCrashHoldsNoLock(t *testing.T) {
	m := &vfs.Mem{}
	_, err := m.Lock("LOCK", "me")
	require.NoError(t, err)
	_, err = m.Crash(1, rand.New(rand.NewPCG(1, 1))).Lock("LOCK", "you")
	require.NoError(t, err)
}

func TestCrashSharesNothingWithWhatGoesOn(t *testing.T) {
	m := &vfs.Mem{}
	f, err := m.Create("a")
	require.NoError(t, err)
	_, err = f.Write([]byte("12"))
	require.NoError(t, err)
	crashed := m.Crash(1, rand.New(rand.NewPCG(1, 1)))
	_, err = f.Write([]byte("3"))
	require.NoError(t, err)
	require.NoError(t, m.Mkdir("b"))
	require.Equal(t, map[string]string{"a": "12"}, tree(t, crashed, "."))
	_, err = crashed.Stat("b")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
