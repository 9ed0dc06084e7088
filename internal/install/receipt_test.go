package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 5000))
	same := noise(9, 5000) // other bytes, same size
	type place struct {
		root, folder string
		p            Plugin
	}
	edit := func(from, to string) func(*testing.T, place) {
		return func(t *testing.T, at place) {
			name := filepath.Join(at.folder, receiptName)
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Contains(t, string(text), from)
			require.NoError(t, os.WriteFile(name, []byte(strings.Replace(string(text), from, to, 1)), 0o640))
		}
	}
	chmod := func(mode os.FileMode, path func(place) string) func(*testing.T, place) {
		return func(t *testing.T, at place) { require.NoError(t, os.Chmod(path(at), mode)) }
	}
	// Only root can change the owner; other users make the file writable for all.
	giveAway := func(path func(place) string) func(*testing.T, place) {
		if os.Geteuid() != 0 {
			return chmod(0o757, path)
		}
		return func(t *testing.T, at place) { require.NoError(t, os.Chown(path(at), 65534, 65534)) }
	}
	tests := []struct {
		name        string
		change      func(*testing.T, place)
		quick, full error
	}{
		{"untouched", func(*testing.T, place) {}, nil, nil},
		{"touched, same bytes", func(t *testing.T, at place) {
			require.NoError(t, os.Chtimes(at.p.Path, time.Now(), time.Unix(1, 0)))
		}, nil, nil},
		{"replaced by a copy", func(t *testing.T, at place) {
			require.NoError(t, os.Remove(at.p.Path))
			require.NoError(t, os.WriteFile(at.p.Path, one.lib, 0o644))
		}, nil, nil},
		{"overwritten, same size", func(t *testing.T, at place) { require.NoError(t, os.WriteFile(at.p.Path, same, 0o644)) }, ErrDamaged, ErrDamaged},
		{"overwritten, size and time restored", func(t *testing.T, at place) {
			info, err := os.Stat(at.p.Path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(at.p.Path, same, 0o644))
			require.NoError(t, os.Chtimes(at.p.Path, time.Time{}, info.ModTime()))
		}, nil, ErrDamaged}, // missed by the quick check
		{"cut", func(t *testing.T, at place) { require.NoError(t, os.Truncate(at.p.Path, 4999)) }, ErrDamaged, ErrDamaged},
		{"removed", func(t *testing.T, at place) { require.NoError(t, os.Remove(at.p.Path)) }, ErrDamaged, ErrDamaged},
		{"header removed", func(t *testing.T, at place) {
			require.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(at.p.Path), "include")))
		}, ErrDamaged, ErrDamaged},
		{"library is a link", func(t *testing.T, at place) {
			require.NoError(t, os.Rename(at.p.Path, at.p.Path+"2"))
			require.NoError(t, os.Symlink(at.p.Path+"2", at.p.Path))
		}, ErrDamaged, ErrDamaged},
		{"folder is a link", func(t *testing.T, at place) {
			dir := filepath.Dir(at.p.Path)
			require.NoError(t, os.Rename(dir, dir+"2"))
			require.NoError(t, os.Symlink(dir+"2", dir))
		}, ErrDamaged, ErrDamaged},
		{"library is a folder", func(t *testing.T, at place) {
			require.NoError(t, os.Remove(at.p.Path))
			require.NoError(t, os.Mkdir(at.p.Path, 0o750))
		}, ErrDamaged, ErrDamaged},
		{"library for all to write", chmod(0o646, func(at place) string { return at.p.Path }), ErrUnsafe, ErrUnsafe},
		{"its folder for all to write", chmod(0o757, func(at place) string { return filepath.Dir(at.p.Path) }), ErrUnsafe, ErrUnsafe},
		{"the same, sticky", chmod(0o757|os.ModeSticky, func(at place) string { return filepath.Dir(at.p.Path) }), ErrUnsafe, ErrUnsafe},
		{"folder of the kind for all to write", chmod(0o757, func(at place) string { return at.folder }), ErrUnsafe, ErrUnsafe},
		{"root for all to write", chmod(0o757, func(at place) string { return at.root }), ErrUnsafe, ErrUnsafe},
		{"root as /tmp is", chmod(0o777|os.ModeSticky, func(at place) string { return at.root }), nil, nil},
		{"receipt for all to write", chmod(0o646, func(at place) string { return filepath.Join(at.folder, receiptName) }), ErrUnsafe, ErrUnsafe},
		{"library of nobody", giveAway(func(at place) string { return at.p.Path }), ErrUnsafe, ErrUnsafe},
		{"its folder, of nobody", giveAway(func(at place) string { return filepath.Dir(at.p.Path) }), ErrUnsafe, ErrUnsafe},
		{"folder of the kind, of nobody", giveAway(func(at place) string { return at.folder }), ErrUnsafe, ErrUnsafe},
		{"root of nobody", giveAway(func(at place) string { return at.root }), ErrUnsafe, ErrUnsafe},
		{"receipt of nobody", giveAway(func(at place) string { return filepath.Join(at.folder, receiptName) }), ErrUnsafe, ErrUnsafe},
		{"receipt gone", func(t *testing.T, at place) {
			require.NoError(t, os.Remove(filepath.Join(at.folder, receiptName)))
		}, ErrNotInstalled, ErrNotInstalled},
		{"receipt empty", func(t *testing.T, at place) {
			require.NoError(t, os.Truncate(filepath.Join(at.folder, receiptName), 0))
		}, ErrDamaged, ErrDamaged},
		{"receipt huge", func(t *testing.T, at place) {
			require.NoError(t, os.Truncate(filepath.Join(at.folder, receiptName), 10<<30))
		}, ErrDamaged, ErrDamaged},
		{"receipt of the future", edit(`"format": 1`, `"format": 2`), ErrDamaged, ErrDamaged},
		{"receipt with a field more", edit(`"format": 1`, `"format": 1, "x": 1`), ErrDamaged, ErrDamaged},
		{"receipt of another kind", edit(`"kind": "toy"`, `"kind": "tpu"`), ErrDamaged, ErrDamaged},
		{"receipt leads elsewhere", edit(`"dir": "`, `"dir": "../`), ErrDamaged, ErrDamaged},
		{"receipt leads to the root", edit(`"dir": "`, `"dir": "/`), ErrDamaged, ErrDamaged},
		{"receipt names a file elsewhere", edit(`"path": "xla_plugins/`, `"path": "../../`), ErrDamaged, ErrDamaged},
		{"receipt names another library", edit(`"library": "`, `"library": "x`), ErrDamaged, ErrDamaged},
		{"receipt agrees with another library", func(t *testing.T, at place) {
			require.NoError(t, os.WriteFile(at.p.Path, same, 0o644))
			edit(one.LibrarySHA256, sum(same))(t, at)
		}, ErrDamaged, ErrDamaged}, // the table knows better
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			wheel := filepath.Join(t.TempDir(), "x.whl")
			require.NoError(t, os.WriteFile(wheel, one.wheel, 0o600))
			o := Options{Root: root, From: wheel, table: []Wheel{one.Wheel}}
			p, err := Install(t.Context(), "toy", o)
			require.NoError(t, err)
			test.change(t, place{root, filepath.Join(root, "toy"), p})
			for d, want := range map[depth]error{quick: test.quick, full: test.full} {
				found, err := find(t.Context(), "toy", root, o, d)
				require.ErrorIs(t, err, want, "full %v", d)
				if want == nil {
					require.Equal(t, test.name == "untouched" || test.name == "root as /tmp is", p.Stamp == found.Stamp, "the stamp tells what a quick look passes over")
					found.Stamp = p.Stamp
					require.Equal(t, p, found)
				}
			}
			if test.quick == ErrUnsafe {
				return // needs a person
			}
			_, err = Install(t.Context(), "toy", o)
			require.NoError(t, err, "an installation mends it")
			_, err = find(t.Context(), "toy", root, o, full)
			require.NoError(t, err)
		})
	}
}

func FuzzReceipt(f *testing.F) {
	good, err := json.Marshal(receipt{Format: 1, Dir: "pjrt-1", Library: "a/b.so", Files: []fileRecord{{Path: "a/b.so", SHA256: sum(nil)}}})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"format":1,"dir":"pjrt-/../..","library":"/etc/passwd","files":[{"path":"/etc/passwd"}]}`))
	f.Add([]byte(`{"format":1,"dir":"pjrt-1","library":"../../x","files":[{"path":"../../x","sha256":"` + sum(nil) + `"}]}`))
	f.Add([]byte(`{"format":1,"dir":"pjrt-/../..","library":"x","files":[{"path":"x","sha256":"` + sum(nil) + `"}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseReceipt(text)
		if err != nil {
			return
		}
		for _, file := range r.Files {
			if !filepath.IsLocal(filepath.Join(r.Dir, file.Path)) {
				t.Fatalf("%q below %q leads elsewhere", file.Path, r.Dir)
			}
		}
		if !strings.HasPrefix(r.plugin("/root", nil).Path, "/root/"+dirPrefix) {
			t.Fatalf("library at %q", r.plugin("/root", nil).Path)
		}
	})
}
