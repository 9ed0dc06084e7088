package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

func TestF04_filesAreCutOrLonger(t *testing.T) {
	m := saved(t, 1, 2)
	n := 0
	for _, name := range []string{"COMMIT", "manifest.json", "state.safetensors"} {
		path := dir(2) + "/" + name
		text := read(t, m, path)
		for i := range len(text) + 2 {
			if i == len(text) {
				continue
			}
			write(t, m, path, append(bytes.Clone(text), 'x')[:i])
			fallsBack(t, m, fmt.Sprintf("%s of %d bytes", path, i))
			n++
		}
		write(t, m, path, text)
	}
	t.Logf("F04: %d lengths of files: all found", n)
}

func TestF04_filesAreMissingOrOthers(t *testing.T) {
	names := []string{"COMMIT", "manifest.json", "state.safetensors"}
	found, harmless := 0, 0
	for mask := 1; mask < 1<<(2*len(names)); mask++ { // for each file: its own, none, that of step 1, a folder
		m := saved(t, 1, 2)
		var what []string
		for i, name := range names {
			path := dir(2) + "/" + name
			kind := mask >> (2 * i) & 3
			what = append(what, fmt.Sprint(name, ": ", [...]string{"its own", "none", "of step 1", "a folder"}[kind]))
			if kind == 0 {
				continue
			}
			require.NoError(t, m.Remove(path))
			switch kind {
			case 2:
				write(t, m, path, read(t, m, dir(1)+"/"+name))
			case 3:
				require.NoError(t, m.Mkdir(path))
			}
		}
		fallsBack(t, m, fmt.Sprint(what))
		found++
	}
	for _, c := range []struct {
		name string
		do   func(*vfs.Mem) error
	}{
		{"the folder of another step", func(m *vfs.Mem) error {
			return errors.Join(m.Rename(dir(2), "x"), m.Rename(dir(1), dir(2)), m.Rename("x", dir(1)))
		}},
		{"a file in place of the folder", func(m *vfs.Mem) error {
			if err := m.Rename(dir(2), "x"); err != nil {
				return err
			}
			_, err := m.Create(dir(2))
			return err
		}},
		{"an empty folder", func(m *vfs.Mem) error { return errors.Join(m.Rename(dir(2), "x"), m.Mkdir(dir(2))) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := saved(t, 1, 2)
			require.NoError(t, c.do(m))
			var d *checkpoint.DamagedError
			require.ErrorAs(t, openMem(t, m, checkpoint.Options{}).Verify(t.Context(), 2), &d)
			found++
		})
	}
	m := saved(t, 1, 2)
	write(t, m, dir(2)+"/notes.txt", []byte("mine"))
	c, err := openMem(t, m, checkpoint.Options{}).Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, version(t, c))
	harmless++
	t.Logf("F04: %d mixtures of files found, %d harmless", found, harmless)
}

func TestNewestHasAllFailures(t *testing.T) {
	m := saved(t, 1, 2, 3)
	require.NoError(t, m.Remove(dir(1)+"/COMMIT"))
	write(t, m, dir(2)+"/manifest.json", []byte("{}"))
	write(t, m, dir(3)+"/state.safetensors", nil)
	f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	_, err := f.Newest(t.Context())
	require.NotErrorIs(t, err, checkpoint.ErrNone)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for s := range checkpoint.Step(3) {
		require.ErrorContains(t, err, dir(s+1))
	}
	require.ErrorContains(t, err, "3 found, none can be loaded")
	require.NoError(t, f.Prune(t.Context()))
	list, err := f.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3, "nothing damaged is removed")
	for i, info := range list {
		require.EqualValues(t, i+1, info.Step)
		var d *checkpoint.DamagedError
		require.ErrorAs(t, info.Err, &d)
	}
}

//lazo:norace
func TestF27_memory(t *testing.T) {
	right := string(read(t, saved(t, 1, 2), dir(2)+"/manifest.json"))
	size := hostileSize
	fill := func(old, open, closing string, element func(i int) string) []byte {
		var b bytes.Buffer
		for i := 0; b.Len() < size; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(element(i))
		}
		return []byte(strings.Replace(right, old, old+open+b.String()+closing, 1))
	}
	key := func(i int) string { return fmt.Sprintf("%x", i) }
	worst := 0.0
	for _, c := range []struct {
		name string
		text func() []byte
	}{
		{"short keys in a section", func() []byte {
			return fill(`"sections": {`, `"x":{`, `},`, func(i int) string { return `"` + key(i) + `":0` })
		}},
		{"escaped keys in a section", func() []byte {
			return fill(`"sections": {`, `"x":{`, `},`, func(i int) string { return `"\n` + key(i) + `":0` })
		}},
		{"many sections", func() []byte {
			return fill(`"sections": {`, ``, `,`, func(i int) string { return `"` + key(i) + `":0` })
		}},
		{"many metrics", func() []byte {
			return fill(`"metrics": {`, ``, `,`, func(i int) string { return `"` + key(i) + `":0` })
		}},
		{"many tensors", func() []byte {
			return fill(`"tensors": {`, ``, `,`, func(i int) string { return `"` + key(i) + `":"00000000"` })
		}},
		{"a million tensors", func() []byte {
			return fill(`"tensors": {`, ``, `,`, func(i int) string { return fmt.Sprintf(`"\n%051d":"00000000"`, i) })
		}},
		{"many fields", func() []byte { return fill(`{`, ``, `,`, func(i int) string { return `"` + key(i) + `":0` }) }},
		{"many objects", func() []byte { return fill(`"sections": {`, `"x":[`, `],`, func(i int) string { return `{}` }) }},
		{"quotation marks", func() []byte { return fill(`"sections": {`, `"x":[`, `],`, func(i int) string { return `"\":"` }) }},
		{"digits", func() []byte {
			return []byte(strings.Replace(right, `"step": 2`, `"step": 2`+strings.Repeat("0", size), 1))
		}},
		{"an unknown format's", func() []byte {
			return []byte(strings.Replace(right, `"format": 1`, `"format": 1.`+strings.Repeat("0", size), 1))
		}},
		{"one byte too many", func() []byte { return bytes.Repeat([]byte(" "), checkpoint.ManifestLimit+1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.text()
			m := forged(t, text)
			f := openMem(t, m, checkpoint.Options{ReadOnly: true})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := f.Load(t.Context(), 2)
			runtime.ReadMemStats(&after)
			var damaged *checkpoint.DamagedError
			if c.name != "short keys in a section" && c.name != "escaped keys in a section" && c.name != "many objects" && c.name != "quotation marks" {
				require.ErrorAs(t, err, &damaged)
			} else {
				require.NoError(t, err)
			}
			got := after.TotalAlloc - before.TotalAlloc
			limit := 2*uint64(len(text)) + 64<<20
			require.LessOrEqual(t, got, limit)
			worst = max(worst, float64(got)/float64(limit))
		})
	}
	t.Logf("F27: manifests of up to %d MB: all memory ever taken is at most %.0f%% of twice the file and 64 MB", hostileSize>>20, 100*worst)
}

// A reader of the folder finds a checkpoint at any time, though the writer removes them under its hands.
func TestReadWhileAnotherProcessSaves(t *testing.T) {
	dir := t.TempDir()
	_, kill := child(t, 1, "sync", 4<<10, 1, dir)
	f, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true, Log: quiet})
	require.NoError(t, err)
	defer f.Close()
	first, last := checkpoint.Step(0), checkpoint.Step(0)
	loads := 0
	for ; loads < 100_000 && last < first+50; loads++ {
		c, err := f.Newest(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, c.Step, last)
		if last = c.Step; first == 0 {
			first = last
		}
	}
	kill()
	t.Logf("%d loads, from step %d to step %d", loads, first, last)
}
