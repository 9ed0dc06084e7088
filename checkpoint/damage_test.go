package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/binary"
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
	require.ErrorIs(t, f.Save(t.Context(), 2, content(2)), fs.ErrExist)
	require.NoError(t, f.Prune(t.Context()))
	require.NoError(t, f.Save(t.Context(), 3, content(3)))
	list, err := f.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2, "nor is it removed")
	require.ErrorIs(t, list[0].Err, checkpoint.ErrNewer)
}
