package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// fallsBack checks that step 2 of steps 1 and 2 is known to be damaged, and that step 1 is loaded in its place, loudly.
func fallsBack(t *testing.T, m *vfs.Mem, what string) *checkpoint.DamagedError {
	t.Helper()
	var log bytes.Buffer
	f := openMem(t, m, checkpoint.Options{ReadOnly: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer f.Close()
	var found *checkpoint.DamagedError
	require.ErrorAs(t, f.Verify(context.Background(), 2), &found, what)
	_, err := f.Load(context.Background(), 2)
	require.ErrorAs(t, err, &found, what)
	require.ErrorContains(t, err, "checkpoint: load step 2 in folder: 1 found, none can be loaded: damaged: step-000000000002/", what)
	c, err := f.Newest(context.Background())
	require.NoError(t, err, what)
	require.Equal(t, 1, version(t, c), what)
	require.Contains(t, log.String(), "skipped", what)
	require.Contains(t, log.String(), found.Path, what)
	_, err = m.Stat(dir(2))
	require.NoError(t, err, "it is not removed")
	return found
}

func TestF03_eachByteIsFlipped(t *testing.T) {
	m := saved(t, 1, 2)
	state := read(t, m, dir(2)+"/state.safetensors")
	header := 8 + int(binary.LittleEndian.Uint64(state))
	flips := 0
	for _, c := range []struct {
		name string
		n    int
	}{{"COMMIT", -1}, {"manifest.json", -1}, {"state.safetensors", header}} {
		path := dir(2) + "/" + c.name
		text := read(t, m, path)
		n := c.n
		if n < 0 {
			n = len(text)
		}
		for i := range n {
			for _, x := range []byte{1 << (i % 8), 0x20, ' ' ^ '\t'} {
				bad := bytes.Clone(text)
				bad[i] ^= x
				write(t, m, path, bad)
				flips++
				found := fallsBack(t, m, fmt.Sprintf("%s: byte %d", path, i))
				if c.name == "state.safetensors" {
					require.Equal(t, path, found.Path)
				} else {
					require.Equal(t, dir(2)+"/manifest.json", found.Path, "they do not fit")
				}
			}
		}
		write(t, m, path, text)
	}
	t.Logf("F03: %d flips of %s: all found, step 1 loaded", flips, "COMMIT, manifest and header")
}

// payloadFlips is the number of bits that are flipped, one after the other.
var payloadFlips = 2000

func TestF03_bitsOfTensorsAreFlipped(t *testing.T) {
	m := saved(t, 1, 2)
	path := dir(2) + "/state.safetensors"
	state := read(t, m, path)
	header := 8 + int(binary.LittleEndian.Uint64(state))
	random := rand.New(rand.NewPCG(3, 3))
	tensors := map[string]int{}
	for range payloadFlips {
		bad := bytes.Clone(state)
		at := header + random.IntN(len(bad)-header)
		bad[at] ^= 1 << random.IntN(8)
		write(t, m, path, bad)
		found := fallsBack(t, m, fmt.Sprint("byte ", at))
		require.Equal(t, path, found.Path)
		require.NotEmpty(t, found.Tensor)
		tensors[found.Tensor]++
		var from, to int
		text := found.Error()
		_, err := fmt.Sscanf(text[strings.LastIndex(text, "bytes "):], "bytes %d to %d", &from, &to)
		require.NoError(t, err)
		require.True(t, from <= at && at <= to, "%d: %s", at, text)
	}
	require.Len(t, tensors, 3, "all but the empty one")
	t.Logf("F03: %d random bits of tensors flipped: all found, the tensor named: %v", payloadFlips, tensors)
}

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

func TestPruneKeepsOneThatIsRight(t *testing.T) {
	m := saved(t, 1, 2, 3, 4)
	for _, s := range []checkpoint.Step{3, 4} { // damage that the manifests do not show
		path := dir(s) + "/state.safetensors"
		text := read(t, m, path)
		text[len(text)-1] ^= 1
		write(t, m, path, text)
	}
	f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	require.NoError(t, f.Prune(t.Context()))
	require.Equal(t, []checkpoint.Step{2, 3, 4}, steps(t, f))
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, version(t, c))

	write(t, m, dir(2)+"/state.safetensors", bytes.Repeat([]byte{7}, len(read(t, m, dir(2)+"/state.safetensors"))))
	require.ErrorContains(t, f.Prune(t.Context()), "no checkpoint is intact")
	require.NoError(t, f.Save(t.Context(), 5, content(5)))
	require.Equal(t, []checkpoint.Step{5}, steps(t, f), "a new one is right")
}

// F39: a checkpoint of a later lazo is not passed over for an older one.
func TestF39_newerFormat(t *testing.T) {
	m := saved(t, 1, 2)
	text := bytes.Replace(read(t, m, dir(2)+"/manifest.json"), []byte(`"format": 1`), []byte(`"format": 3, "more": []`), 1)
	write(t, m, dir(2)+"/manifest.json", text)
	write(t, m, dir(2)+"/COMMIT", []byte(checkpoint.Commit(text)))
	f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	_, err := f.Newest(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrNewer)
	require.ErrorContains(t, err, "format 3, this lazo reads up to 2")
	require.ErrorIs(t, f.Save(t.Context(), 2, content(2)), checkpoint.ErrExists)
	require.NoError(t, f.Prune(t.Context()))
	require.NoError(t, f.Save(t.Context(), 3, content(3)))
	list, err := f.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2, "nor is it removed")
	require.ErrorIs(t, list[0].Err, checkpoint.ErrNewer)
}
