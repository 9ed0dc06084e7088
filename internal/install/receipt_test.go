package install

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
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

// TestTableMovesOn: an installed version stays in use, and is checked against its row, whose kind has changed, until
// Install is called.
func TestTableMovesOn(t *testing.T) {
	one, two := newToy(t, "1.0", noise(1, 5000)), newToy(t, "2.0", noise(2, 5000))
	files, root := t.TempDir(), filepath.Join(t.TempDir(), "root")
	place := func(name string, data []byte) string {
		path := filepath.Join(files, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	p, err := Install(t.Context(), "toy", Options{Root: root, From: place("1.whl", one.wheel), table: []Wheel{one.Wheel}})
	require.NoError(t, err)
	require.Empty(t, p.Successor)
	older := one.Wheel
	older.Kind = "toy1"
	now := Options{Root: root, From: place("2.whl", two.wheel), table: []Wheel{two.Wheel, older}}
	for _, d := range []depth{quick, full} {
		found, err := find(t.Context(), "toy", root, now, d)
		require.NoError(t, err)
		require.Equal(t, "2.0", found.Successor)
		found.Successor = ""
		require.Equal(t, p, found)
	}

	receipt := filepath.Join(root, "toy", receiptName)
	text, err := os.ReadFile(receipt)
	require.NoError(t, err)
	other := noise(3, 5000)
	require.NoError(t, os.WriteFile(p.Path, other, 0o640))
	require.NoError(t, os.WriteFile(receipt, []byte(strings.Replace(string(text), one.LibrarySHA256, sum(other), 1)), 0o640))
	_, err = find(t.Context(), "toy", root, now, full)
	require.ErrorIs(t, err, ErrDamaged, "the row of the other kind knows better than the receipt")

	p, err = Install(t.Context(), "toy", now)
	require.NoError(t, err)
	require.Equal(t, []string{"2.0", ""}, []string{p.Version, p.Successor})
	bare := now
	bare.From, bare.Force = place("toy.so", two.lib), true
	p, err = Install(t.Context(), "toy", bare)
	require.NoError(t, err)
	require.Empty(t, p.Successor, "the library of the table, without its wheel")
}

// A reader sees one complete version while versions are replaced.
func TestFindDuringInstall(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 5000))
	wheel := filepath.Join(t.TempDir(), "x.whl")
	require.NoError(t, os.WriteFile(wheel, one.wheel, 0o600))
	o := Options{Root: t.TempDir(), From: wheel, Force: true, table: []Wheel{one.Wheel}}
	_, err := Install(t.Context(), "toy", o)
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		defer close(done)
		for range 50 {
			if _, err := Install(context.Background(), "toy", o); err != nil {
				done <- err
			}
		}
	}()
	looks, paths := 0, make(map[string]bool)
	for {
		select {
		case err, more := <-done:
			require.NoError(t, err)
			if !more {
				t.Logf("%d looks saw %d versions", looks, len(paths))
				return
			}
		default:
		}
		p, err := find(t.Context(), "toy", o.Root, o, quick)
		require.NoError(t, err)
		looks, paths[p.Path] = looks+1, true
	}
}

func TestCheckEndsWithContext(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 5000))
	wheel := filepath.Join(t.TempDir(), "x.whl")
	require.NoError(t, os.WriteFile(wheel, one.wheel, 0o600))
	o := Options{Root: t.TempDir(), From: wheel, table: []Wheel{one.Wheel}}
	_, err := Install(t.Context(), "toy", o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = find(ctx, "toy", o.Root, o, full)
	require.ErrorIs(t, err, context.Canceled)
}

// Foreign files in the folder of a kind stay.
func TestForeignFilesStay(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 5000))
	x := serve(t, one)
	root := t.TempDir()
	folder := filepath.Join(root, "toy")
	require.NoError(t, os.Mkdir(folder, 0o750))
	for _, name := range []string{".new-1", "pjrt-0.1-x", ".fetch-1", ".receipt-1"} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, name), 0o750))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "thesis.txt"), nil, 0o600))
	x.answer(http.NotFound)
	_, err := Install(t.Context(), "toy", x.options(root, one))
	require.Error(t, err)
	require.ElementsMatch(t, []string{"lock", "thesis.txt"}, namesIn(t, folder), "leftovers go first: they may be why the disk is full")
	x.answer(nil)
	_, err = Install(t.Context(), "toy", x.options(root, one))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(folder, "thesis.txt"))
	require.NoError(t, os.Remove(filepath.Join(folder, "thesis.txt")))
	tidy(t, root, true)
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

func TestTable(t *testing.T) {
	table, err := Table()
	require.NoError(t, err)
	require.Equal(t, []string{"cpu", "cpu106", "cpu81", "cuda", "cuda12", "cuda_compile", "tpu"}, Kinds())
	libraries := make(map[string]int)
	seen := make(map[string]bool)
	of := make(map[string]Wheel) // CUDA's and the CPU's, by their files
	for _, w := range table {
		if w.Kind == "cuda" || w.Kind == "cpu" {
			of[w.File] = w
		}
	}
	versions := make(map[string]string)
	for _, w := range table {
		switch whole := w; {
		case w.Kind == "cuda_compile": // a part of CUDA's
			whole.Kind = "cuda"
			require.Equal(t, of[w.File], whole)
		case w.Kind != "cpu" && of[w.File].Kind == "cpu": // the CPU's by its version
			whole.Kind = "cpu"
			require.Equal(t, of[w.File], whole)
		default:
			require.False(t, seen[w.SHA256] || seen[w.File], "%s is there twice", w.File)
			seen[w.SHA256], seen[w.File] = true, true
		}
		if strings.HasPrefix(w.Kind, "cpu") {
			versions[w.Kind+" "+w.Platform] = w.API
		}
		require.Contains(t, w.File, "-"+w.Version+"-")
		require.NotEmpty(t, w.Licence)
		libraries[w.Kind+" "+w.Platform] += len(w.Library) / max(1, len(w.Library))
		if w.Library != "" {
			require.Contains(t, w.Members, w.Library)
			if w.Kind == MPI || w.Kind == MPICH {
				require.Empty(t, w.API)
				require.Contains(t, w.Members, path.Join(path.Dir(path.Dir(w.Library)), "bin", "mpirun"), "its launcher")
				continue
			}
			require.Regexp(t, regexp.MustCompile(`^0\.\d+$`), w.API)
		}
	}
	require.Equal(t, map[string]int{
		"cpu linux/amd64": 1, "cpu linux/arm64": 1, "cpu106 linux/amd64": 1, "cpu81 linux/amd64": 1, "cpu81 linux/arm64": 1, "cuda linux/amd64": 1, "cuda linux/arm64": 1,
		"cuda12 linux/amd64": 1, "cuda12 linux/arm64": 1, "cuda_compile linux/amd64": 1, "cuda_compile linux/arm64": 1, "tpu linux/amd64": 1,
		"mpi linux/amd64": 1, "mpi linux/arm64": 1, "mpich linux/amd64": 1, "mpich linux/arm64": 1,
	}, libraries)
	require.Equal(t, map[string]string{
		"cpu linux/amd64": "0.106", "cpu106 linux/amd64": "0.106", "cpu linux/arm64": "0.81", "cpu81 linux/amd64": "0.81", "cpu81 linux/arm64": "0.81",
	}, versions, "a name with a number is that version of the API")
	require.NotContains(t, plugins, "://")
}

func TestParseTableRefuses(t *testing.T) {
	row := strings.Split(strings.TrimSpace(plugins[strings.LastIndex(strings.TrimSpace(plugins), "\n")+1:]), "\t")
	_, err := parseTable(strings.Join(row, "\t"))
	require.NoError(t, err)
	tests := []struct {
		name  string
		field int
		value string
	}{
		{"size", 5, "many"}, {"size of nothing", 5, "0"}, {"short digest", 6, "abc"}, {"no digest", 6, "-"},
		{"path as file", 4, "a/b.whl"}, {"not a wheel", 4, "b.tar"}, {"no library", 8, "-"}, {"library digest", 9, "ABC"},
		{"pattern", 7, "a["}, {"no pattern", 7, "a,"}, {"a field more", 0, "a\tb"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bad := append([]string(nil), row...)
			bad[test.field] = test.value
			_, err := parseTable(strings.Join(bad, "\t"))
			require.ErrorContains(t, err, "plugins.tsv line 1")
		})
	}
}
