package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// T is the common part of *testing.T and *rapid.T.
type T interface {
	require.TestingT
	Helper()
}

var quiet = slog.New(slog.DiscardHandler)

// position is a section.
type position struct {
	Version int
	Samples int64
}

// content is different in every byte for each version.
func content(version int) checkpoint.Content {
	bytes := func(n int) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(version))
		for len(b) < n {
			b = append(b, byte(version*7+len(b)))
		}
		return b[:n]
	}
	return checkpoint.Content{
		Tensors: []checkpoint.Tensor{
			{Name: "layer/weights", DType: safetensors.F32, Dims: []int{4, 3}, Data: bytes(48)},
			{Name: "empty", DType: safetensors.F64, Dims: []int{0, 5}},
			{Name: "../../step", DType: safetensors.I64, Dims: []int{}, Data: bytes(8)},
			{Name: "große Namen <&> \x00", DType: safetensors.U8, Dims: []int{700}, Data: bytes(700)},
		},
		Metrics:  map[string]float64{"loss": 1 / float64(version+1)},
		Sections: map[string]any{"position": position{version, 1 << 60}, "none": nil},
	}
}

// version checks that a checkpoint has exactly the content of one version, and returns it.
func version(t T, c *checkpoint.Checkpoint) int {
	t.Helper()
	var p position
	require.NoError(t, c.Section("position", &p))
	want := content(p.Version)
	require.Len(t, c.Tensors, len(want.Tensors))
	for _, w := range want.Tensors {
		got, ok := c.Tensor(w.Name)
		require.True(t, ok, w.Name)
		require.Equal(t, w.DType, got.DType)
		require.Equal(t, w.Dims, got.Dims)
		require.True(t, bytes.Equal(w.Data, got.Data), w.Name)
	}
	require.Equal(t, want.Metrics, c.Metrics)
	require.EqualValues(t, 1<<60, p.Samples)
	return p.Version
}

func openMem(t T, fs vfs.FS, options checkpoint.Options) *checkpoint.Folder {
	t.Helper()
	if options.Log == nil {
		options.Log = quiet
	}
	f, err := checkpoint.OpenFS(fs, "folder", options)
	require.NoError(t, err)
	return f
}

func save(t T, f *checkpoint.Folder, steps ...checkpoint.Step) {
	t.Helper()
	for _, s := range steps {
		require.NoError(t, f.Save(context.Background(), s, content(int(s))))
	}
}

func steps(t T, f *checkpoint.Folder) []checkpoint.Step {
	t.Helper()
	list, err := f.List(context.Background())
	require.NoError(t, err)
	all := []checkpoint.Step{}
	for _, i := range list {
		if i.Err == nil {
			all = append(all, i.Step)
		}
	}
	return all
}

// saved returns a file system in memory with these steps, after a power loss.
func saved(t T, steps ...checkpoint.Step) *vfs.Mem {
	t.Helper()
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{})
	save(t, f, steps...)
	require.NoError(t, f.Close())
	return m.Crash(0, nil)
}

func read(t T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	text, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	require.NoError(t, errors.Join(err, f.Close()))
	return text
}

// write puts a file in the place of another, durably.
func write(t T, fs vfs.FS, name string, text []byte) {
	t.Helper()
	_ = fs.Remove(name)
	f, err := fs.Create(name)
	require.NoError(t, err)
	_, err = f.Write(text)
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	require.NoError(t, fs.SyncDir(path.Dir(name)))
}

// leftovers are the names in the folder that no clean folder has.
func leftovers(t T, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.ReadDir(".")
	require.NoError(t, err)
	return slices.DeleteFunc(names, func(n string) bool { return n == "LOCK" || strings.HasPrefix(n, "step-") })
}

func dir(step checkpoint.Step) string { return fmt.Sprintf("step-%012d", step) }
