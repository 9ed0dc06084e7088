package runs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/safetensors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// T is what *testing.T and *rapid.T share.
type T interface {
	require.TestingT
	Helper()
}

var quiet = slog.New(slog.DiscardHandler)

func openMem(t T, fs vfs.FS, options checkpoint.Options) *checkpoint.Folder {
	t.Helper()
	if options.Log == nil {
		options.Log = quiet
	}
	f, err := checkpoint.OpenFS(fs, "folder", options)
	require.NoError(t, err)
	return f
}

func openStore(t T, s checkpoint.Store, options checkpoint.Options) *checkpoint.Folder {
	t.Helper()
	if options.Log == nil {
		options.Log = quiet
	}
	f, err := checkpoint.OpenStore(context.Background(), s, "store", options)
	require.NoError(t, err)
	return f
}

// save saves steps that belong to no run.
func save(t T, f *checkpoint.Folder, steps ...checkpoint.Step) {
	t.Helper()
	for _, s := range steps {
		tensor := checkpoint.Tensor{Name: "weights", DType: safetensors.U8, Dims: []int{1}, Data: []byte{byte(s)}}
		require.NoError(t, f.Save(context.Background(), s, checkpoint.Content{Tensors: []checkpoint.Tensor{tensor}}))
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

func dir(step checkpoint.Step) string { return fmt.Sprintf("step-%012d", step) }
