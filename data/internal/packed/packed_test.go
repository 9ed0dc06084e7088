package packed

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/datatest"
)

func TestReader(t *testing.T) {
	zipped := datatest.Gzip(t, []byte("content"))
	for name, file := range map[string][]byte{"plain": []byte("content"), "gzip": zipped} {
		r, err := Reader(bytes.NewReader(file))
		require.NoError(t, err, name)
		text, err := io.ReadAll(r)
		require.NoError(t, err, name)
		require.Equal(t, "content", string(text), name)
	}
	r, err := Reader(bytes.NewReader(nil))
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Empty(t, text)
	_, err = Reader(bytes.NewReader(zipped[:5]))
	require.ErrorIs(t, err, ErrShort)
	require.ErrorContains(t, err, "in the gzip header")
}

// A file's fault is a FormatError, with the place in it; that of a device is not.
func TestReadError(t *testing.T) {
	read := func(file []byte) error {
		r, err := Reader(bytes.NewReader(file))
		require.NoError(t, err)
		_, err = io.ReadAll(r)
		return ReadError(12, "in the rows", err)
	}
	zipped := datatest.Gzip(t, bytes.Repeat([]byte("content"), 100))
	damaged := bytes.Clone(zipped)
	damaged[len(damaged)-6] ^= 1 // the checksum
	for name, err := range map[string]error{"cut": read(zipped[:len(zipped)-1]), "damaged": read(damaged)} {
		var format *data.FormatError
		require.ErrorAs(t, err, &format, name)
		require.EqualValues(t, 12, format.Offset)
	}
	broken := errors.New("the disk is gone")
	var format *data.FormatError
	require.False(t, errors.As(ReadError(12, "in the rows", broken), &format))
	require.EqualError(t, ReadError(12, "in the rows", broken), "byte 12, in the rows: the disk is gone")
}

func TestFile_addsItsPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	require.NoError(t, File(path, func(f *os.File, size int64) error {
		require.EqualValues(t, 3, size)
		return nil
	}))
	require.EqualError(t, File(path, func(*os.File, int64) error { return Errorf(2, "a letter") }), path+": byte 2: a letter")
	require.EqualError(t, File(path, func(*os.File, int64) error { return errors.New("other") }), path+": other")
	require.ErrorIs(t, File(path+"x", nil), os.ErrNotExist)
	require.Error(t, File(filepath.Dir(path), nil), "a folder")
}
