package checkpoint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// forged is steps 1 and 2, the manifest of step 2 another one with the right COMMIT.
func forged(t T, manifest []byte) *vfs.Mem {
	t.Helper()
	m := saved(t, 1, 2)
	write(t, m, dir(2)+"/manifest.json", manifest)
	write(t, m, dir(2)+"/COMMIT", []byte(checkpoint.Commit(manifest)))
	return m
}

func TestF27_hostileManifests(t *testing.T) {
	right := string(read(t, saved(t, 1, 2), dir(2)+"/manifest.json"))
	edit := func(old, new string) string {
		require.Contains(t, right, old)
		return strings.Replace(right, old, new, 1)
	}
	cases := map[string]string{
		"nothing": "", "spaces": " \n", "null": "null", "a list": "[]", "a number": "1", "an empty object": "{}", "cut": right[:len(right)-2], "more behind": right + "{}",
		"a field twice":                 edit(`"step": 2`, `"step": 2, "step": 2`),
		"a field in other letters":      edit(`"step"`, `"Step"`),
		"a field in both":               edit(`"step": 2`, `"step": 2, "STEP": 3`),
		"a field spelled otherwise":     edit(`"step"`, `"\u0073tep"`),
		"an unknown field":              edit(`"step"`, `"path": "/etc/passwd", "step"`),
		"an unknown field of the state": edit(`"header_size"`, `"path": "/etc/passwd", "header_size"`),
		"a tensor twice":                edit(`"empty":`, `"empty": "00000000", "empty":`),
		"a tensor too many":             edit(`"empty":`, `"x": "00000000", "empty":`),
		"another tensor":                edit(`"empty":`, `"full":`),
		"a tensor with a bad sum":       edit(`"empty": "`, `"empty": "x`),
		"a tensor with a sum of text":   edit(`"empty": "00000000"`, `"empty": "0000000g"`),
		"a tensor with a number":        edit(`"empty": "00000000"`, `"empty": 0`),
		"a key twice in a section":      edit(`{"Version":2`, `{"Version":2,"Version":3`),
		"a key twice by its spelling":   edit(`\u003c`, `\u003c": "00000000", "große Namen <`),
		"a key spelled with capitals":   edit(`\u003c`, `\u003C`),
		"deep":                          edit(`"none": null`, `"none": `+strings.Repeat("[", 70)+strings.Repeat("]", 70)),
		"very deep":                     edit(`"none": null`, `"none": `+strings.Repeat(`{"a":`, 100_000)),
		"not UTF-8":                     edit(`"none"`, "\"n\xff\""),
		"another step":                  edit(`"step": 2`, `"step": 3`),
		"a negative step":               edit(`"step": 2`, `"step": -2`),
		"half a step":                   edit(`"step": 2`, `"step": 2.5`),
		"a huge step":                   edit(`"step": 2`, `"step": 1e400`),
		"a step above int64":            edit(`"step": 2`, `"step": 9223372036854775808`),
		"a text for the step":           edit(`"step": 2`, `"step": "2"`),
		"format 0":                      edit(`"format": 1`, `"format": 0`),
		"a negative format":             edit(`"format": 1`, `"format": -1`),
		"no format":                     edit(`"format": 1`, `"format": null`),
		"a list for tensors":            edit(`"tensors": {`, `"tensors": [], "more": {`),
		"a metric that is a text":       edit(`"loss": `, `"loss": "x", "more": `),
		"a metric that is null":         edit(`"loss": `, `"loss": null, "more": `),
		"a metric too large":            edit(`"loss": `, `"loss": 1e999, "more": `),
		"size of another":               edit(`"size":`, `"size":1`),
		"a negative size":               edit(`"size":`, `"size":-`),
		"a header beyond the file":      edit(`"header_size":`, `"header_size":99`),
		"a negative header":             edit(`"header_size":`, `"header_size":-`),
		"another header size":           edit(`"header_size":`, `"header_size":1`),
		"another header sum":            edit(`"header_crc32c":"`, `"header_crc32c":"00000000","x":"`),
	}
	for _, field := range []string{"format", "step", "time", "metrics", "state", "tensors", "sections"} {
		cases["without "+field] = edit(`"`+field+`"`, `"x"`)
		cases[field+" is null"] = edit(`"`+field+`": `, `"`+field+`": null, "x": `)
		cases[field+" is a list"] = edit(`"`+field+`": `, `"`+field+`": [], "x": `)
	}
	for _, at := range []string{"yesterday", "1900-01-01T00:00:00Z", "9999-01-01T00:00:00Z"} {
		cases["the time "+at] = edit(`"time": "`, `"time": "`+at+`", "x": "`)
	}
	harmless := map[string]bool{"another header size": true} // the file has the size of its header
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if harmless[name] {
				return
			}
			found := fallsBack(t, forged(t, []byte(text)), name)
			require.Less(t, len(found.Error()), 1000)
		})
	}
	t.Logf("F27: %d hostile manifests: all refused", len(cases)-len(harmless))
}

// hostileSize is the size of the manifests of TestF27_memory.
var hostileSize = 2 << 20

func TestF27_linksAndPipes(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(path string) error
	}{
		{"a link to the same file", func(p string) error {
			if err := os.Rename(p, p+".x"); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(p)+".x", p)
		}},
		{"a link out of the folder", func(p string) error { _ = os.Remove(p); return os.Symlink("/etc/passwd", p) }},
		{"a pipe", func(p string) error { _ = os.Remove(p); return unix.Mkfifo(p, 0o600) }},
	} {
		for _, name := range []string{"COMMIT", "manifest.json", "state.safetensors"} {
			t.Run(c.name+" for "+name, func(t *testing.T) {
				root := t.TempDir()
				f, err := checkpoint.Open(root, checkpoint.Options{Log: quiet})
				require.NoError(t, err)
				defer f.Close()
				save(t, f, 1, 2)
				require.NoError(t, c.do(filepath.Join(root, dir(2), name)))
				var d *checkpoint.DamagedError
				require.ErrorAs(t, f.Verify(t.Context(), 2), &d)
				got, err := f.Newest(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, version(t, got))
			})
		}
	}
}

// Names of folders are no paths either.
func TestF27_namesOfFolders(t *testing.T) {
	m := saved(t, 1)
	for _, name := range []string{
		"step-2", "step-0000000000002", "step-000000000002.0", "step-000000000002.1", "step-000000000002.02", "step-000000000002.", "step-99999999999999999999",
		"step--00000000002", "step-000000000002 ", "Step-000000000002", "step-00000000000２",
	} {
		require.NoError(t, m.Mkdir(name))
	}
	list, err := openMem(t, m, checkpoint.Options{}).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
}
