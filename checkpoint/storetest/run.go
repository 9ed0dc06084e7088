package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// Run tests a store, which must be empty, and leaves it empty.
func Run(t *testing.T, store checkpoint.Store) {
	for _, row := range []struct {
		name string
		test func(*testing.T, checkpoint.Store)
	}{
		{"an object is put and read", reads},
		{"an object is replaced", replaces},
		{"a missing object", missing},
		{"an error of write leaves no object", writeFails},
		{"a context that ended leaves no object", cancelled},
		{"many goroutines", concurrent},
		{"checkpoints", checkpoints},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.test(t, store)
			keys, err := store.Keys(t.Context())
			require.NoError(t, err)
			for _, key := range keys {
				require.NoError(t, store.Delete(t.Context(), key))
			}
		})
	}
}

func putting(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		for piece := range slices.Chunk(text, 300_000) {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
		return nil
	}
}

func want(t *testing.T, store checkpoint.Store, key string, text []byte) {
	t.Helper()
	size, err := store.Size(t.Context(), key)
	require.NoError(t, err)
	require.EqualValues(t, len(text), size)
	got := make([]byte, len(text))
	n, err := store.ReadAt(t.Context(), key, got, 0)
	if !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
	require.Equal(t, len(text), n)
	require.True(t, bytes.Equal(text, got))
}

func wantKeys(t *testing.T, store checkpoint.Store, keys ...string) {
	t.Helper()
	got, err := store.Keys(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, keys, got)
}

func reads(t *testing.T, store checkpoint.Store) {
	long := make([]byte, 9<<20)
	for i := range long {
		long[i] = byte(i * i >> 11)
	}
	for key, text := range map[string][]byte{"END": []byte("over\n"), "step-000000000001/state.safetensors": long, "step-000000000001/COMMIT": []byte("short"), "step-000000000001.2/COMMIT": {}} {
		require.NoError(t, store.Put(t.Context(), key, putting(text)))
		want(t, store, key, text)
	}
	wantKeys(t, store, "END", "step-000000000001/state.safetensors", "step-000000000001/COMMIT", "step-000000000001.2/COMMIT")
	for _, row := range []struct{ offset, length, n int }{{0, 5, 5}, {1, 2, 2}, {4, 1, 1}, {3, 9, 2}, {5, 1, 0}, {6, 1, 0}, {2, 0, 0}} {
		p := make([]byte, row.length)
		n, err := store.ReadAt(t.Context(), "step-000000000001/COMMIT", p, int64(row.offset))
		require.Equal(t, row.n, n, "%+v", row)
		require.Equal(t, "short"[min(row.offset, 5):min(row.offset, 5)+n], string(p[:n]), "%+v", row)
		if row.n < row.length {
			require.ErrorIs(t, err, io.EOF, "%+v", row)
		} else if !errors.Is(err, io.EOF) {
			require.NoError(t, err, "%+v", row)
		}
	}
}

func replaces(t *testing.T, store checkpoint.Store) {
	for _, text := range []string{"a longer text", "short", ""} {
		require.NoError(t, store.Put(t.Context(), "a/b", putting([]byte(text))))
		want(t, store, "a/b", []byte(text))
	}
	wantKeys(t, store, "a/b")
}

func missing(t *testing.T, store checkpoint.Store) {
	wantKeys(t, store)
	_, err := store.Size(t.Context(), "a/b")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = store.ReadAt(t.Context(), "a/b", make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	if err := store.Delete(t.Context(), "a/b"); err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	require.NoError(t, store.Put(t.Context(), "a/b", putting([]byte("x"))))
	require.NoError(t, store.Delete(t.Context(), "a/b"))
	_, err = store.Size(t.Context(), "a/b")
	require.ErrorIs(t, err, fs.ErrNotExist)
	wantKeys(t, store)
}

func writeFails(t *testing.T, store checkpoint.Store) {
	cause := errors.New("cause")
	for _, bytes := range []int{0, 10, 6 << 20} {
		err := store.Put(t.Context(), "a/b", func(w io.Writer) error {
			return errors.Join(putting(make([]byte, bytes))(w), cause)
		})
		require.ErrorIs(t, err, cause)
		wantKeys(t, store)
	}
}

func cancelled(t *testing.T, store checkpoint.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	err := store.Put(ctx, "a/b", func(w io.Writer) error {
		_, err := w.Write([]byte("a part"))
		cancel()
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
	wantKeys(t, store)
}

func concurrent(t *testing.T, store checkpoint.Store) {
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			key, text := fmt.Sprintf("g%d/a", g), bytes.Repeat([]byte{byte(g)}, 1000)
			for range 5 {
				if err := store.Put(t.Context(), key, putting(text)); err != nil {
					t.Error(err)
				}
				got := make([]byte, 1000)
				if n, err := store.ReadAt(t.Context(), key, got, 0); n != 1000 || !bytes.Equal(got, text) {
					t.Error(n, err)
				}
			}
			if err := store.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	wantKeys(t, store)
}

func checkpoints(t *testing.T, store checkpoint.Store) {
	options := checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}, ReadBack: true, Log: slog.New(slog.DiscardHandler)}
	f, err := checkpoint.OpenStore(t.Context(), store, "store", options)
	require.NoError(t, err)
	_, err = f.Newest(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrNone)
	data := make([]byte, 10<<20)
	for step := range checkpoint.Step(4) {
		for i := range data {
			data[i] = byte(i>>8) + byte(step)
		}
		err := f.Save(t.Context(), step, checkpoint.Content{Tensors: []checkpoint.Tensor{{Name: "w", DType: safetensors.U8, Dims: []int{len(data)}, Data: data}}})
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	f, err = checkpoint.OpenStore(t.Context(), store, "store", options)
	require.NoError(t, err)
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, c.Step)
	require.True(t, bytes.Equal(data, c.Tensors[0].Data))
	list, err := f.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.NoError(t, f.Verify(t.Context(), 2))
	require.NoError(t, f.Close())
}
