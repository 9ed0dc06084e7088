package install

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nothing is written to the current folder.
func TestR51_relativeHome(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", "some/where")
	one := newToy(t, "1.0", noise(1, 1000))
	x := serve(t, one)
	_, err := Install(t.Context(), "toy", x.options("", one))
	require.ErrorContains(t, err, `"some/where" of $HOME is not an absolute path`)
	require.Zero(t, x.downloads.Load())
	require.NoDirExists(t, "some")
}

func TestF25_EightAtOnce(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 2_000_000))
	x := serve(t, one)
	const processes = 8
	reached, release := make(chan struct{}, processes), make(chan struct{})
	x.answer(func(w http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-release
		w.Write(one.wheel)
	})
	root := t.TempDir()
	var children []*exec.Cmd
	for range processes {
		child := x.child(t.Context(), t, order{Root: root, Table: []Wheel{one.Wheel}})
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = bufio.NewReaderSize(out, 16).ReadString('\n') // it has started
		require.NoError(t, err)
		children = append(children, child)
	}
	<-reached
	close(release)
	failed := 0
	for _, child := range children {
		if child.Wait() != nil {
			failed++
		}
	}
	require.Zero(t, failed)
	require.EqualValues(t, 1, x.downloads.Load())
	_, err := find(t.Context(), "toy", root, x.options(root, one), full)
	require.NoError(t, err)
	tidy(t, root, true)
	t.Logf("F25: %d processes at once: %d download, %d failed", processes, x.downloads.Load(), failed)
}

func TestF25_DiskFull(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 2_000_000))
	packed := newToy(t, "2.0", make([]byte, 2_000_000)) // small as a wheel, so the disk is full while unpacking
	for name, toy := range map[string]toy{"while downloading": one, "while unpacking": packed} {
		t.Run(name, func(t *testing.T) {
			x := serve(t, toy)
			root := t.TempDir()
			child := x.child(t.Context(), t, order{Root: root, Table: []Wheel{toy.Wheel}, FileLimit: 1_000_000})
			out, err := child.Output()
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "%v", err)
			require.Equal(t, 3, exit.ExitCode(), "%s", out)
			require.Contains(t, string(out), "no room in "+root)
			tidy(t, root, false)
			_, err = Install(t.Context(), "toy", x.options(root, toy))
			require.NoError(t, err, "the next run recovers")
			tidy(t, root, true)
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

// The script runs in a copy of the tree, with a table of toys and a go command that only prints its arguments.
func TestScript(t *testing.T) {
	one, other := newToy(t, "1.0", noise(1, 5000)), newToy(t, "2.0", noise(2, 5000))
	one.Kind = "cpu"
	second := other.Wheel
	second.Library, second.LibrarySHA256 = "", ""
	first := one.Wheel
	first.Kind, first.File, first.SHA256 = "toy", "main-1.0-py3-none-any.whl", sum([]byte("main"))

	tree := filepath.Join(t.TempDir(), "a tree $(touch pwned)")
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(tree, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	text, err := os.ReadFile("../../scripts/install_pjrt.sh")
	require.NoError(t, err)
	script := put("scripts/install_pjrt.sh", string(text), 0o755)
	put("internal/install/plugins.tsv", "# comment\n"+one.Wheel.row()+first.row()+second.row(), 0o644)
	_, err = parseTable("# comment\n" + one.Wheel.row() + first.row() + second.row())
	require.NoError(t, err)
	put("bin/go", "#!/bin/sh\npwd -P\nfor a; do printf '[%s]' \"$a\"; done\n", 0o755)
	known := put("elsewhere/"+one.File, string(one.wheel), 0o644)
	renamed := put("elsewhere/it's a; name", string(one.wheel), 0o644)
	library := put("elsewhere/toy.so", string(one.lib), 0o644)
	unknown := put("elsewhere/unknown.whl", string(other.wheel), 0o644)
	wrong := put("elsewhere/wrong/"+one.File, string(one.lib), 0o644) // right for the library, wrong for this name
	put("elsewhere/all/"+first.File, "main", 0o644)
	put("elsewhere/all/"+second.File, string(other.wheel), 0o644)
	put("elsewhere/some/"+first.File, "main", 0o644)
	put("elsewhere/bad/"+first.File, "evil", 0o644)
	put("elsewhere/bad/"+second.File, string(other.wheel), 0o644)
	elsewhere := filepath.Dir(known)

	tests := []struct {
		name string
		args []string
		code int
		want string // in what is printed
	}{
		{"nothing given", nil, 0, "[run][./cmd/lazo][install][cpu]"},
		{"kind", []string{"toy"}, 0, "[install][toy]"},
		{"check", []string{"toy", "--check"}, 0, "[install][toy][--check]"},
		{"option first", []string{"--force", "cpu"}, 0, "[install][cpu][--force]"},
		{"prefix becomes absolute", []string{"--prefix", "x y"}, 0, "[install][cpu][--prefix=" + elsewhere + "/x y]"},
		{"absolute prefix", []string{"cpu", "--prefix=/x"}, 0, "[--prefix=/x]"},
		{"index", []string{"--index-url", "https://host/$(touch pwned)"}, 0, "[--index-url=https://host/$(touch pwned)]"},
		{"known wheel", []string{"--from", one.File}, 0, "[--from=" + known + "]"},
		{"known wheel, any name", []string{"--from=" + renamed}, 0, "[--from=" + renamed + "]"},
		{"known library", []string{"--from", library}, 0, "[--from=" + library + "]"},
		{"unknown wheel", []string{"--from", unknown}, 1, "--sha256"},
		{"unknown wheel, its digest", []string{"--from", unknown, "--sha256", other.SHA256}, 0, "[--sha256=" + other.SHA256 + "]"},
		{"unknown wheel, other digest", []string{"--sha256", one.SHA256, "--from", unknown}, 1, "is not " + one.SHA256},
		{"known name, wrong bytes", []string{"--from", wrong}, 1, "is not one that the table has for cpu"},
		{"wheel of another kind", []string{"toy", "--from", known}, 1, "for toy on"},
		{"missing file", []string{"--from", "none"}, 1, "no such file"},
		{"folder", []string{"toy", "--from", "all"}, 0, "[--from=" + elsewhere + "/all]"},
		{"folder lacks one", []string{"toy", "--from", "some"}, 1, "lacks " + second.File},
		{"folder with a wrong one", []string{"toy", "--from", "bad"}, 1, "wrong digest"},
		{"help", []string{"--help"}, 0, "usage: "},
		{"unknown kind", []string{"gpu"}, 2, "unknown plugin gpu"},
		{"two kinds", []string{"cpu", "toy"}, 2, "one plugin at a time"},
		{"unknown option", []string{"--frobnicate"}, 2, "unknown option"},
		{"no value", []string{"--from"}, 2, "needs a value"},
		{"empty value", []string{"--prefix="}, 2, "needs a value"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			command := exec.Command("/bin/sh", append([]string{script}, test.args...)...)
			command.Dir = elsewhere
			command.Env = []string{"PATH=" + filepath.Join(tree, "bin") + ":" + os.Getenv("PATH")}
			out, err := command.CombinedOutput()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, test.code, code, "%s", out)
			require.Contains(t, string(out), test.want)
			if test.code != 0 {
				require.NotContains(t, string(out), "[run]", "nothing is handed on")
			} else if test.name != "help" {
				require.True(t, strings.HasPrefix(string(out), tree+"\n"), "runs in the root of the tree: %s", out)
			}
			require.NoFileExists(t, filepath.Join(elsewhere, "pwned"))
			require.NoFileExists(t, filepath.Join(tree, "pwned"))
		})
	}
}
