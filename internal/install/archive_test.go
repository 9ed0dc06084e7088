package install

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// member is a file of an archive; missing fields are as in an honest one.
type member struct {
	name   string
	data   []byte
	mode   fs.FileMode
	method uint16
	edit   func(h *zip.FileHeader) // of the header in the archive, after packing
}

func archiveOf(members ...member) []byte {
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	pack, err := flate.NewWriter(nil, flate.BestSpeed)
	must(err)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		if m.mode == 0 {
			m.mode = 0o644
		}
		h.SetMode(m.mode)
		var packed bytes.Buffer
		if m.data == nil {
			h.Method = zip.Store
		} else {
			pack.Reset(&packed)
			_, err = pack.Write(m.data)
			must(err)
			must(pack.Close())
		}
		h.CRC32, h.UncompressedSize64, h.CompressedSize64 = crc32.ChecksumIEEE(m.data), uint64(len(m.data)), uint64(packed.Len())
		if m.method != 0 {
			h.Method = m.method
		}
		if m.edit != nil {
			m.edit(h)
		}
		raw, err := w.CreateRaw(h)
		must(err)
		if packed.Len() > 0 {
			_, err = raw.Write(packed.Bytes())
			must(err)
		}
	}
	must(w.Close())
	return buffer.Bytes()
}

// hostile is built once: the large ones take a while.
var hostile = sync.OnceValue(buildHostile)

// buildHostile makes archives with the wanted library "lib/a.so" and something suspicious.
func buildHostile() map[string][]byte {
	good := member{name: "lib/a.so", data: []byte("library")}
	with := func(members ...member) []byte { return archiveOf(append([]member{good}, members...)...) }
	bad := func(name string) []byte { return with(member{name: name, data: []byte("bad")}) }
	kind := func(mode fs.FileMode) []byte {
		return with(member{name: "lib/b.so", data: []byte("/etc/passwd"), mode: mode})
	}
	changed := func(edit func(*zip.FileHeader)) []byte {
		return archiveOf(member{name: "lib/a.so", data: bytes.Repeat([]byte("library"), 100), edit: edit})
	}
	many := make([]member, 100_000)
	for i := range many {
		many[i] = member{name: fmt.Sprintf("lib/%d.so", i)}
	}
	long := make([]member, 1500)
	for i := range long {
		long[i] = member{name: fmt.Sprintf("lib/%d.so", i), edit: func(h *zip.FileHeader) { h.Comment = strings.Repeat("x", 60_000) }}
	}
	whole := with()
	return map[string][]byte{
		"absolute":                   bad("/etc/passwd.so"),
		"dot-dot":                    bad("lib/../../evil.so"),
		"only dots":                  bad(".."),
		"dot":                        bad("./lib/b.so"),
		"sibling with its prefix":    bad("../target-2/evil.so"),
		"backslash":                  bad(`lib\..\..\evil.so`),
		"drive letter":               bad("c:/evil.so"),
		"NUL":                        bad("lib/a.so\x00.txt"),
		"empty name":                 bad(""),
		"empty part":                 bad("lib//b.so"),
		"not UTF-8":                  bad("lib/\xff.so"),
		"name of 60 kB":              bad(strings.Repeat("x", 60_000)),
		"symbolic link":              kind(fs.ModeSymlink | 0o777),
		"link then file":             with(member{name: "out", data: []byte(".."), mode: fs.ModeSymlink | 0o777}, member{name: "out/evil.so", data: []byte("x")}),
		"device":                     kind(fs.ModeDevice | 0o644),
		"character device":           kind(fs.ModeDevice | fs.ModeCharDevice | 0o644),
		"fifo":                       kind(fs.ModeNamedPipe | 0o644),
		"socket":                     kind(fs.ModeSocket | 0o644),
		"folder without slash":       kind(fs.ModeDir | 0o755),
		"twice":                      with(good),
		"twice, other bytes":         with(member{name: "lib/a.so", data: []byte("other")}),
		"clash of case":              bad("lib/A.so"),
		"clash of case, folder":      bad("Lib/b.so"),
		"file and folder":            bad("lib/a.so/b.so"),
		"file and folder, by case":   bad("LIB"),
		"encrypted":                  changed(func(h *zip.FileHeader) { h.Flags |= 1 }),
		"packed in another way":      changed(func(h *zip.FileHeader) { h.Method = 93 }),
		"stored, other size":         changed(func(h *zip.FileHeader) { h.Method = zip.Store }),
		"wrong checksum":             changed(func(h *zip.FileHeader) { h.CRC32++ }),
		"smaller than it says":       changed(func(h *zip.FileHeader) { h.UncompressedSize64++ }),
		"larger than it says":        changed(func(h *zip.FileHeader) { h.UncompressedSize64-- }),
		"says 2^63":                  changed(func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 63 }),
		"says 2^64-1":                changed(func(h *zip.FileHeader) { h.UncompressedSize64 = 1<<64 - 1 }),
		"bomb 1000:1":                archiveOf(member{name: "lib/a.so", data: make([]byte, 64<<20)}),
		"bomb that says 10 bytes":    archiveOf(member{name: "lib/a.so", data: make([]byte, 64<<20), edit: func(h *zip.FileHeader) { h.UncompressedSize64 = 10 }}),
		"bomb beside the library":    with(member{name: "x", data: make([]byte, 64<<20)}),
		"100,000 members":            with(many...),
		"15,000 members":             with(many[:15_000]...),
		"list of members of 90 MB":   with(long...),
		"without the library":        archiveOf(member{name: "other/a.so"}),
		"the library is a folder":    archiveOf(member{name: "lib/a.so/", mode: fs.ModeDir | 0o755}),
		"cut":                        whole[:len(whole)-30],
		"no zip":                     []byte("<html>404 not found</html>"),
		"empty":                      nil,
		"says it has 65,535 members": promise(whole),
	}
}

// must is for building archives in memory, which cannot fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// promise makes the end of a zip list members that are missing.
func promise(archive []byte) []byte {
	archive = bytes.Clone(archive)
	end := archive[len(archive)-22:]
	binary.LittleEndian.PutUint16(end[8:], 65535)
	binary.LittleEndian.PutUint16(end[10:], 65535)
	return archive
}

func TestF26_HostileArchives(t *testing.T) {
	archives := hostile()
	refused := 0
	found := map[string]bool{ // only while unpacking
		"stored, other size": true, "wrong checksum": true, "smaller than it says": true, "larger than it says": true, "bomb that says 10 bytes": true,
	}
	for name, archive := range archives {
		t.Run(name, func(t *testing.T) {
			sandbox := t.TempDir()
			wheel := filepath.Join(sandbox, "x.whl")
			require.NoError(t, os.WriteFile(wheel, archive, 0o600))
			err := extractTo(t.Context(), wheel, filepath.Join(sandbox, "target"))
			require.ErrorIs(t, err, ErrArchive)
			require.Less(t, len(err.Error()), 500)
			if !found[name] {
				require.Empty(t, namesIn(t, filepath.Join(sandbox, "target")), "refused before anything is written")
			}
			refused++
			require.Equal(t, []string{"target", "x.whl"}, namesIn(t, sandbox), "nothing outside the target")
			require.LessOrEqual(t, sizeBelow(t, filepath.Join(sandbox, "target")), int64(1<<20))
		})
	}
	t.Logf("F26: %d of %d hostile archives refused, 0 files outside the target", refused, len(archives))
}

// Names that differ only in case are refused if one of them is to be written.
func TestExtract_caseOfWhatIsNotWritten(t *testing.T) {
	wheel := filepath.Join(t.TempDir(), "x.whl")
	beside := []member{{name: "lib/a.so", data: []byte("library")}, {name: "bin/mpicc", data: []byte("C")}, {name: "bin/mpiCC", data: []byte("C++")}}
	require.NoError(t, os.WriteFile(wheel, archiveOf(beside...), 0o600))
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, extractTo(t.Context(), wheel, target))
	require.Equal(t, []string{"lib"}, namesIn(t, target))
}

func TestF26_Memory(t *testing.T) {
	dir := t.TempDir()
	o := order{Root: filepath.Join(dir, "target")}
	for name, archive := range hostile() {
		wheel := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		require.NoError(t, os.WriteFile(wheel, archive, 0o600))
		o.Archives = append(o.Archives, wheel)
	}
	var none *index
	out, err := none.child(t.Context(), t, o).Output()
	require.NoError(t, err, "%s", out)
	var before, after int64
	_, err = fmt.Sscanf(string(out), "ready\n%d %d", &before, &after)
	require.NoError(t, err)
	require.Positive(t, before)
	require.Less(t, after-before, int64(64<<10))
	t.Logf("F26: peak memory of a process that opens all %d: %d kB, %d kB above its start", len(o.Archives), after, after-before)
}

// obeyExtract prints the peak memory in kB before and after all archives were refused.
func obeyExtract(archives []string, target string) int {
	peak := func() int64 {
		status, _ := os.ReadFile("/proc/self/status")
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		var kilobytes int64
		fmt.Sscan(rest, &kilobytes)
		return kilobytes
	}
	before := peak()
	for i, archive := range archives {
		if err := extractTo(context.Background(), archive, fmt.Sprint(target, i)); !errors.Is(err, ErrArchive) {
			fmt.Println(archive, err)
			return 1
		}
	}
	fmt.Println(before, peak())
	return 0
}

func extractTo(ctx context.Context, wheel, target string) error {
	if err := os.Mkdir(target, 0o750); err != nil {
		return err
	}
	tree, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer tree.Close()
	_, err = extract(ctx, wheel, []string{"lib/*.so"}, tree)
	return err
}

func namesIn(t testing.TB, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func sizeBelow(t testing.TB, dir string) (total int64) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if info, infoErr := e.Info(); err == nil && infoErr == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return err
	}))
	return total
}

func TestExtract(t *testing.T) {
	sandbox := t.TempDir()
	wheel := filepath.Join(sandbox, "x.whl")
	require.NoError(t, os.WriteFile(wheel, archiveOf(
		member{name: "lib/", mode: fs.ModeDir | 0o755},
		member{name: "lib/a.so", data: []byte("library"), mode: 0o777},
		member{name: "lib/bin/tool.so", data: []byte("tool")},
		member{name: "lib/deep/b.so", data: []byte("not asked for")},
		member{name: "evil.py", data: []byte("import os")},
	), 0o600))
	target := filepath.Join(sandbox, "target")
	require.NoError(t, os.Mkdir(target, 0o750))
	tree, err := os.OpenRoot(target)
	require.NoError(t, err)
	defer tree.Close()
	files, err := extract(t.Context(), wheel, []string{"lib/*.so", "lib/bin/*"}, tree)
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, sum([]byte("library")), files[0].SHA256)
	require.Equal(t, []string{"a.so", "bin"}, namesIn(t, filepath.Join(target, "lib")))
	for name, most := range map[string]fs.FileMode{"lib/a.so": 0o644, "lib/bin/tool.so": 0o755, "lib": 0o755} {
		info, err := os.Stat(filepath.Join(target, name))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&^most, name)
	}
}

// For any bytes, extract does not write outside its target, panic, or fail with an error other than that of a bad
// archive.
func FuzzExtract(f *testing.F) {
	for _, archive := range hostile() {
		if len(archive) < 10_000 {
			f.Add(archive)
		}
	}
	f.Add(archiveOf(member{name: "lib/a.so", data: []byte("library")}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		sandbox := t.TempDir()
		wheel := filepath.Join(sandbox, "x.whl")
		require.NoError(t, os.WriteFile(wheel, archive, 0o600))
		if err := extractTo(context.Background(), wheel, filepath.Join(sandbox, "target")); err != nil {
			require.ErrorIs(t, err, ErrArchive)
		}
		require.Equal(t, []string{"target", "x.whl"}, namesIn(t, sandbox))
	})
}
