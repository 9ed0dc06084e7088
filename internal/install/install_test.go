package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/go-xla/installer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/fetch"
)

func TestInstall(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 300_000))
	x := serve(t, one)
	o := x.options(filepath.Join(t.TempDir(), "deep", "root"), one)
	var stages []Stage
	o.Progress = func(e Event) {
		if len(stages) == 0 || stages[len(stages)-1] != e.Stage {
			stages = append(stages, e.Stage)
		}
	}
	o.Probe = func(ctx context.Context, path string) error {
		lib, err := os.ReadFile(path)
		require.Equal(t, one.lib, lib)
		return err
	}
	p, err := Install(t.Context(), "toy", o)
	require.NoError(t, err)
	require.Equal(t, []Stage{Resolve, Download, Extract, Probe}, stages)
	require.Equal(t, Plugin{Kind: "toy", Version: "1.0", API: "0.1", Path: p.Path, SHA256: one.LibrarySHA256, Licence: "none", Platform: platform(), Stamp: p.Stamp}, p)
	require.True(t, filepath.IsAbs(p.Path))
	tidy(t, o.Root, true)
	info, err := os.Stat(p.Path)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&^0o644)
	header, err := os.Stat(filepath.Join(filepath.Dir(p.Path), "include", "pjrt_c_api.h"))
	require.NoError(t, err)
	require.Zero(t, header.Mode().Perm()&^0o644)
	dir, err := os.Stat(filepath.Dir(p.Path))
	require.NoError(t, err)
	require.Zero(t, dir.Mode().Perm()&^0o755)
	require.NoFileExists(t, filepath.Join(filepath.Dir(p.Path), "__init__.py"))

	again, err := Install(t.Context(), "toy", o)
	require.NoError(t, err)
	require.Equal(t, p, again)
	require.EqualValues(t, 1, x.downloads.Load(), "what is installed is not downloaded again")

	o.Force = true
	forced, err := Install(t.Context(), "toy", o)
	require.NoError(t, err)
	require.NotEqual(t, p.Path, forced.Path)
	require.EqualValues(t, 2, x.downloads.Load())
	tidy(t, o.Root, true)
}

// Kinds are installed next to each other: each has its own files, and is removed alone.
func TestInstallKindsBesideEachOther(t *testing.T) {
	one, two := newToy(t, "1.0", noise(1, 1000)), newToy(t, "2.0", noise(2, 1000))
	two.Kind = "toy2"
	x := serve(t, one, two)
	o := x.options(t.TempDir(), one, two)
	for _, kind := range []string{"toy", "toy2", "toy"} {
		_, err := Install(t.Context(), kind, o)
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, x.downloads.Load())
	for _, want := range []toy{one, two} {
		found, err := find(t.Context(), want.Kind, o.Root, o, full)
		require.NoError(t, err)
		require.Equal(t, []string{want.Kind, want.Version, want.LibrarySHA256}, []string{found.Kind, found.Version, found.SHA256})
	}
	require.NoError(t, os.RemoveAll(filepath.Join(o.Root, "toy")))
	_, err := find(t.Context(), "toy", o.Root, o, quick)
	require.ErrorIs(t, err, ErrNotInstalled)
	_, err = find(t.Context(), "toy2", o.Root, o, full)
	require.NoError(t, err)
}

// A build with two names is found by both, wherever it was installed; another build is not.
func TestFind_sameBuild(t *testing.T) {
	one, two := newToy(t, "1.0", noise(1, 1000)), newToy(t, "2.0", noise(2, 1000))
	again := one
	again.Kind, two.Kind = "toy1", "toy2"
	x := serve(t, one, two)
	bare := filepath.Join(t.TempDir(), "toy.so")
	require.NoError(t, os.WriteFile(bare, one.lib, 0o600))
	for name, change := range map[string]func(o *Options){
		"wheel": func(*Options) {}, "library": func(o *Options) { o.From, o.SHA256 = bare, one.LibrarySHA256 },
	} {
		t.Run(name, func(t *testing.T) {
			o := x.options(t.TempDir(), one, again, two)
			from := o
			change(&from)
			p, err := Install(t.Context(), "toy", from)
			require.NoError(t, err)
			for _, d := range []depth{quick, full} {
				found, err := find(t.Context(), "toy1", o.Root, o, d)
				require.NoError(t, err)
				require.Equal(t, p, found)
				_, err = find(t.Context(), "toy2", o.Root, o, d)
				require.ErrorIs(t, err, ErrNotInstalled)
			}
			// Its own name is searched first, and a damaged file does not count under another name.
			require.NoError(t, os.WriteFile(p.Path, []byte("short"), 0o644))
			_, err = find(t.Context(), "toy1", o.Root, o, quick)
			require.ErrorIs(t, err, ErrDamaged)
			own, err := Install(t.Context(), "toy1", o)
			require.NoError(t, err)
			require.Equal(t, "toy1", own.Kind)
			found, err := find(t.Context(), "toy1", o.Root, o, full)
			require.NoError(t, err)
			require.Equal(t, own, found)
		})
	}
}

func TestInstallMendsDamage(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 1000))
	x := serve(t, one)
	o := x.options(t.TempDir(), one)
	p, err := Install(t.Context(), "toy", o)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.Path, []byte("short"), 0o644))
	p, err = Install(t.Context(), "toy", o)
	require.NoError(t, err)
	require.NoError(t, fetch.VerifyFile(p.Path, 1000, one.LibrarySHA256))
	require.EqualValues(t, 2, x.downloads.Load())
	tidy(t, o.Root, true)
}

// A new version replaces the old one only when all went well.
func TestUpgrade(t *testing.T) {
	one, two := newToy(t, "1.0", noise(1, 5000)), newToy(t, "2.0", noise(2, 5000))
	broken := errors.New("broken")
	tests := []struct {
		name   string
		change func(x *index, o *Options)
		want   error
	}{
		{"probe fails", func(x *index, o *Options) { o.Probe = func(context.Context, string) error { return broken } }, broken},
		{"download fails", func(x *index, o *Options) { x.answer(http.NotFound) }, fetch.ErrStatus},
		{"library is another", func(x *index, o *Options) { o.table[0].LibrarySHA256 = sum(nil) }, fetch.ErrDigest},
		{"member missing", func(x *index, o *Options) { o.table[0].Members = []string{library, "none"} }, ErrArchive},
		{"library not among the members", func(x *index, o *Options) { o.table[0].Library = "none" }, ErrArchive},
		{"two wheels with one file", func(x *index, o *Options) {
			o.table = append(o.table, o.table[0])
			o.table[1].Library, o.table[1].LibrarySHA256 = "", ""
		}, ErrArchive},
		{"not in the index", func(x *index, o *Options) { o.table[0].File = "toy-3-py3-none-any.whl" }, ErrNotFound},
		{"nothing goes wrong", func(x *index, o *Options) {}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := serve(t, one, two)
			root := t.TempDir()
			before, err := Install(t.Context(), "toy", x.options(root, one))
			require.NoError(t, err)
			o := x.options(root, two)
			test.change(x, &o)
			after, err := Install(t.Context(), "toy", o)
			require.ErrorIs(t, err, test.want)
			found, findErr := find(t.Context(), "toy", root, Options{table: o.table}, full)
			require.NoError(t, findErr)
			if test.want == nil {
				require.Equal(t, "2.0", found.Version)
				require.Equal(t, after, found)
				require.NoFileExists(t, before.Path)
			} else {
				require.Contains(t, err.Error(), "install: toy: ")
				before.Successor = "2.0" // the only difference
				require.Equal(t, before, found)
			}
			tidy(t, root, true)
		})
	}
}

func TestF25_FailingInstalls(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 200_000))
	wrong := append([]byte(nil), one.wheel...)
	wrong[len(wrong)/2] ^= 1
	send := func(data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); w.Write(data) }
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		change func(o *Options)
		want   error
	}{
		{"one bit wrong", send(wrong), nil, fetch.ErrDigest},
		{"404 page", http.NotFound, nil, fetch.ErrStatus},
		{"500 page", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "sorry", 500) }, nil, fetch.ErrStatus},
		{"short", send(one.wheel[:5000]), nil, fetch.ErrSize},
		{"long", send(append(one.wheel[:len(one.wheel):len(one.wheel)], 0)), nil, fetch.ErrSize},
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Write(one.wheel)
			}
		}, nil, fetch.ErrSize},
		{"stalls", func(w http.ResponseWriter, r *http.Request) {
			w.Write(one.wheel[:5000])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, func(o *Options) { o.IdleTimeout = 50 * time.Millisecond }, fetch.ErrTimeout},
		{"slow drip", func(w http.ResponseWriter, r *http.Request) {
			for i := 0; r.Context().Err() == nil; i++ {
				w.Write(one.wheel[i%1000 : i%1000+1])
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		}, func(o *Options) { o.TotalTimeout = 100 * time.Millisecond }, fetch.ErrTimeout},
		{"certificate of nobody", nil, func(o *Options) { o.HTTP = nil }, errAny},
		{"redirect to http", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/x.whl", http.StatusFound)
		}, nil, fetch.ErrInsecure},
		{"redirect loop", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, nil, fetch.ErrRedirects},
		{"http index", nil, func(o *Options) { o.IndexURL = strings.Replace(o.IndexURL, "https", "http", 1) }, fetch.ErrInsecure},
		{"index links to http", nil, func(o *Options) {
			o.resolve = func(context.Context, Wheel) (string, error) { return "http://127.0.0.1/x.whl", nil }
		}, fetch.ErrInsecure},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := serve(t, one)
			root := t.TempDir()
			o := x.options(root, one)
			x.answer(test.answer)
			if test.change != nil {
				test.change(&o)
			}
			_, err := Install(t.Context(), "toy", o)
			require.Error(t, err)
			if test.want != errAny {
				require.ErrorIs(t, err, test.want)
			}
			tidy(t, root, false)
			_, err = find(t.Context(), "toy", root, o, quick)
			require.ErrorIs(t, err, ErrNotInstalled)

			x.answer(nil)
			_, err = Install(t.Context(), "toy", x.options(root, one))
			require.NoError(t, err, "the next run recovers")
			tidy(t, root, true)
		})
	}
	t.Logf("F25: %d failing installs: nothing installed, 0 files left, the next run recovers in all", len(tests))
}

var errAny = errors.New("any error")

func TestContextEndsInstall(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 1000))
	stop := errors.New("enough")
	for _, stage := range []Stage{Resolve, Download, Extract, Probe} {
		t.Run(string(stage), func(t *testing.T) {
			x := serve(t, one)
			o := x.options(t.TempDir(), one)
			ctx, cancel := context.WithCancelCause(t.Context())
			o.Progress = func(e Event) {
				if e.Stage == stage {
					cancel(stop)
				}
			}
			o.Probe = func(ctx context.Context, path string) error { return context.Cause(ctx) }
			_, err := Install(ctx, "toy", o)
			require.ErrorIs(t, err, stop)
			tidy(t, o.Root, false)
		})
	}
	t.Run("waiting for another", func(t *testing.T) {
		root := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(root, "toy"), 0o750))
		unlock, err := lock(t.Context(), filepath.Join(root, "toy", "lock"), nil)
		require.NoError(t, err)
		defer unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 2*lockPause)
		defer cancel()
		_, err = Install(ctx, "toy", serve(t, one).options(root, one))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "another installation holds")
	})
}

func TestInstallFrom(t *testing.T) {
	one, other := newToy(t, "1.0", noise(1, 5000)), newToy(t, "2.0", noise(2, 5000))
	second := one.Wheel
	second.File, second.Library, second.LibrarySHA256, second.Members = "toy_extra-1.0-py3-none-any.whl", "", "", []string{"toy-1.dist-info/*"}
	dir := t.TempDir()
	put := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
		return path
	}
	known, renamed := put(one.File, one.wheel), put("renamed", one.wheel)
	unknown, bare := put(other.File, other.wheel), put("bare.so", one.lib)
	foreign, cut := put("foreign.so", other.lib), put("cut.whl", one.wheel[:5000])
	put("all/"+one.File, one.wheel)
	put("all/"+second.File, one.wheel)
	put("some/"+one.File, one.wheel)
	put("wrong/"+one.File, one.wheel)
	put("wrong/"+second.File, other.wheel)
	large := put("large.whl", nil)
	require.NoError(t, os.Truncate(large, maxUnpacked+1))
	both := []Wheel{one.Wheel, second}
	elsewhere := one.Wheel
	elsewhere.Platform = "plan9/mips"

	tests := []struct {
		name, from, digest string
		table              []Wheel
		want               error
		version, lib       string
	}{
		{"known wheel", known, "", nil, nil, "1.0", one.LibrarySHA256},
		{"known wheel, any name", renamed, "", nil, nil, "1.0", one.LibrarySHA256},
		{"known wheel, its digest", known, strings.ToUpper(one.SHA256), nil, nil, "1.0", one.LibrarySHA256},
		{"known wheel, other digest", known, other.SHA256, nil, fetch.ErrDigest, "", ""},
		{"known library", bare, "", nil, nil, "1.0", one.LibrarySHA256},
		{"unknown wheel", unknown, "", nil, ErrUnknownWheel, "", ""},
		{"unknown wheel, its digest", unknown, other.SHA256, nil, nil, "2.0", other.LibrarySHA256},
		{"unknown library", foreign, "", nil, ErrUnknownWheel, "", ""},
		{"unknown library, its digest", foreign, other.LibrarySHA256, nil, nil, "", other.LibrarySHA256},
		{"wheel cut off", cut, "", nil, ErrUnknownWheel, "", ""},
		{"wheel cut off, its digest", cut, sum(one.wheel[:5000]), nil, ErrArchive, "", ""},
		{"larger than any plugin", large, "", nil, fetch.ErrSize, "", ""},
		{"not there", filepath.Join(dir, "none"), "", nil, os.ErrNotExist, "", ""},
		{"one of two wheels", known, "", both, errAny, "", ""},
		{"unknown one of two wheels", unknown, other.SHA256, both, ErrUnknownWheel, "", ""},
		{"folder with both", filepath.Join(dir, "all"), "", both, nil, "1.0", one.LibrarySHA256},
		{"folder with one", filepath.Join(dir, "some"), "", both, os.ErrNotExist, "", ""},
		{"folder with a wrong one", filepath.Join(dir, "wrong"), "", both, fetch.ErrDigest, "", ""},
		{"folder and digest", filepath.Join(dir, "all"), one.SHA256, both, errAny, "", ""},
		{"no wheel for here", known, "", []Wheel{elsewhere}, ErrNoWheel, "", ""},
		{"no wheel for here, library with digest", foreign, other.LibrarySHA256, []Wheel{elsewhere}, nil, "", other.LibrarySHA256},
		{"digest without file", "", one.SHA256, nil, errAny, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.table == nil {
				test.table = []Wheel{one.Wheel}
			}
			o := Options{Root: t.TempDir(), From: test.from, SHA256: test.digest, table: test.table}
			o.resolve = func(context.Context, Wheel) (string, error) {
				return "", fmt.Errorf("a local file needs no index")
			}
			p, err := Install(t.Context(), "toy", o)
			if test.want != nil {
				require.Error(t, err)
				if test.want != errAny {
					require.ErrorIs(t, err, test.want)
				}
				tidy(t, o.Root, false)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.version, p.Version)
			require.NoError(t, fetch.VerifyFile(p.Path, 0, test.lib))
			tidy(t, o.Root, true)
			if test.from != "" {
				require.FileExists(t, known, "a local file stays")
			}
			again, err := Install(t.Context(), "toy", o)
			require.NoError(t, err)
			require.Equal(t, p, again)
		})
	}
}

func TestAddress(t *testing.T) {
	var info installer.PipPackageInfo
	info.Info.ProjectURL = "https://index/project/toy/"
	info.Releases = map[string][]installer.PipReleaseInfo{
		"1.0": {{Filename: "a.whl", URL: "https://files/a.whl"}, {Filename: "b.whl", URL: "../../files/b.whl"}},
		"2.0": {{Filename: "c.whl", URL: "https://files/c.whl"}},
	}
	for file, want := range map[string]string{"a.whl": "https://files/a.whl", "b.whl": "https://index/files/b.whl", "c.whl": "", "d.whl": ""} {
		got, err := address(&info, Wheel{File: file, Version: "1.0"})
		require.Equal(t, want, got)
		if want == "" {
			require.ErrorIs(t, err, ErrNotFound)
		}
	}
}

func TestUnknownKind(t *testing.T) {
	for _, kind := range []string{"", "gpu", "../cpu", "cpu/x"} {
		_, err := Install(t.Context(), kind, Options{Root: t.TempDir()})
		require.ErrorIs(t, err, ErrUnknownKind)
		require.ErrorContains(t, err, "cpu, cpu106, cpu81, cuda, cuda12, cuda_compile, mpi, mpich, tpu")
		_, err = Find(kind, t.TempDir())
		require.ErrorIs(t, err, ErrUnknownKind)
	}
}

// S51, S54: LAZO_HOME is the folder of plugins, else one in HOME. An error names both.
func TestS51_defaultRoot(t *testing.T) {
	t.Setenv("LAZO_HOME", "/opt/lazo")
	root, err := DefaultRoot()
	require.NoError(t, err)
	require.Equal(t, "/opt/lazo", root)
	t.Setenv("LAZO_HOME", "some/where")
	_, err = DefaultRoot()
	require.EqualError(t, err, `"some/where" of $LAZO_HOME is not an absolute path`)
	t.Setenv("LAZO_HOME", "")
	t.Setenv("HOME", "/home/somebody")
	root, err = DefaultRoot()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(root, "/home/somebody/"), root)
	t.Setenv("HOME", "some/where")
	_, err = DefaultRoot()
	require.ErrorContains(t, err, "no folder of plugins: set LAZO_HOME to one, or HOME: ")
}

// S54: other users may read and load an installation, as far as the umask of the installing process allows.
func TestS54_othersMayRead(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 1000))
	x := serve(t, one)
	for umask, want := range map[int]fs.FileMode{0o022: 0o755, 0o077: 0o700} {
		root := filepath.Join(t.TempDir(), "root")
		before := syscall.Umask(umask)
		p, err := Install(t.Context(), "toy", x.options(root, one))
		syscall.Umask(before)
		require.NoError(t, err)
		for at := filepath.Dir(p.Path); len(at) >= len(root); at = filepath.Dir(at) {
			info, err := os.Stat(at)
			require.NoError(t, err)
			require.Equal(t, want, info.Mode().Perm(), at)
		}
		for _, name := range []string{p.Path, filepath.Join(root, "toy", receiptName)} {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, want&0o044, info.Mode().Perm()&want&0o044, name)
		}
	}
}

// S54: an installation that waits for another reports it once, before it waits.
func TestS54_waitsAloud(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 1000))
	x := serve(t, one)
	root := t.TempDir()
	path := filepath.Join(root, "toy", "lock")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
	unlock, err := lock(t.Context(), path, nil)
	require.NoError(t, err)
	o, waits := x.options(root, one), 0
	o.Progress = func(e Event) {
		if e.Stage == Wait {
			require.Equal(t, path, e.File)
			waits++
			unlock()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // it would wait forever without the report
	defer cancel()
	_, err = Install(ctx, "toy", o)
	require.NoError(t, err)
	require.Equal(t, 1, waits)
}
