package gocloud_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/gocloud"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/checkpoint/storetest"
)

func TestStore(t *testing.T) {
	files, err := fileblob.OpenBucket(t.TempDir(), nil)
	require.NoError(t, err)
	for name, bucket := range map[string]*blob.Bucket{
		"memory": memblob.OpenBucket(nil),
		"files":  files,
		"a part": blob.PrefixedBucket(memblob.OpenBucket(nil), "run-7/"),
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, gocloud.Store{Bucket: bucket})
			require.NoError(t, bucket.Close())
		})
	}
}

// A panic of what writes must not make half an object.
func TestPutThatPanics(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	store := gocloud.Store{Bucket: bucket}
	require.Panics(t, func() {
		_ = store.Put(t.Context(), "a", func(w io.Writer) error {
			_, _ = w.Write([]byte("half"))
			panic("oh")
		})
	})
	keys, err := store.Keys(t.Context())
	require.NoError(t, err)
	require.Empty(t, keys)
}

// checkpoint.Open reads the folder of a bucket of files.
func TestFilesAreAFolder(t *testing.T) {
	dir := t.TempDir()
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
	require.NoError(t, err)
	defer bucket.Close()
	quiet := slog.New(slog.DiscardHandler)
	f, err := checkpoint.OpenStore(t.Context(), gocloud.Store{Bucket: bucket}, dir, checkpoint.Options{Log: quiet})
	require.NoError(t, err)
	tensor := checkpoint.Tensor{Name: "w", DType: safetensors.U8, Dims: []int{3}, Data: []byte{1, 2, 3}}
	require.NoError(t, f.Save(t.Context(), 5, checkpoint.Content{Tensors: []checkpoint.Tensor{tensor}}))
	disk, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true, Log: quiet})
	require.NoError(t, err)
	c, err := disk.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 3}, c.Tensors[0].Data)
	require.NoError(t, disk.Close())
}

func Example() {
	ctx := context.Background()
	bucket, err := blob.OpenBucket(ctx, "mem://") // or "s3://models?region=eu-west-1", with the import of its driver
	if err != nil {
		panic(err)
	}
	defer bucket.Close()
	folder, err := checkpoint.OpenStore(ctx, gocloud.Store{Bucket: blob.PrefixedBucket(bucket, "run-7/")}, "mem://run-7", checkpoint.Options{})
	if err != nil {
		panic(err)
	}
	weights := checkpoint.Tensor{Name: "w", DType: safetensors.F32, Dims: []int{2}, Data: safetensors.Bytes([]float32{1, 2})}
	if err := folder.Save(ctx, 1200, checkpoint.Content{Tensors: []checkpoint.Tensor{weights}}); err != nil {
		panic(err)
	}
	newest, err := folder.Newest(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(newest.Step, newest.Tensors[0].Name)
	// Output: 1200 w
}
