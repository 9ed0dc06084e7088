package files

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/datatest"
)

// images and labels are files in the form of MNIST's, with n examples. The first pixel of image i is i, its label i %
// 10.
func images(n int) []byte {
	file := idx(0x08, []uint32{uint32(n), 28, 28})
	for i := range n {
		image := make([]byte, 28*28)
		image[0], image[1] = byte(i), 255
		file = append(file, image...)
	}
	return file
}

func labels(n int) []byte {
	file := idx(0x08, []uint32{uint32(n)})
	for i := range n {
		file = append(file, byte(i%10))
	}
	return file
}

func write(t *testing.T, files map[string][]byte) (dir string) {
	dir = t.TempDir()
	for name, file := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), file, 0o600))
	}
	return dir
}

// small is a whole database, two of its files packed.
func small(t *testing.T) map[string][]byte {
	return map[string][]byte{
		"train-images-idx3-ubyte.gz": datatest.Gzip(t, images(25)),
		"train-labels-idx1-ubyte":    labels(25),
		"t10k-images-idx3-ubyte":     images(12),
		"t10k-labels-idx1-ubyte.gz":  datatest.Gzip(t, labels(12)),
	}
}

func TestMNIST(t *testing.T) {
	train, test, err := MNIST(write(t, small(t)))
	require.NoError(t, err)
	for set, n := range map[*data.Set]int{train: 25, test: 12} {
		require.Equal(t, n, set.Len())
		x, err := data.Batch{Fields: set.Fields()}.Field("x")
		require.NoError(t, err)
		require.Equal(t, []int{n, 28, 28, 1}, x.Dims)
		y, err := data.Batch{Fields: set.Fields()}.Field("y")
		require.NoError(t, err)
		for i, label := range y.Flat.([]int32) {
			require.EqualValues(t, i%10, label)
			require.Equal(t, []float32{float32(i) / 255, 1, 0}, x.Slice(i, i+1).Flat.([]float32)[:3])
		}
	}
}

func TestF28_MNISTFilesThatDoNotFit(t *testing.T) {
	tooHigh := labels(25)
	tooHigh[8+17] = 10
	cases := []struct {
		name, file string
		bytes      []byte
		offset     int64
		want       string
	}{
		{"one label less", "train-labels-idx1-ubyte", labels(24), 4, "24 labels, but 25 images in "},
		{"one label more", "train-labels-idx1-ubyte", labels(26), 4, "26 labels, but 25 images in "},
		{"label out of range", "train-labels-idx1-ubyte", tooHigh, 25, "label 10 of example 17, expected 0 to 9"},
		{"images for labels", "train-labels-idx1-ubyte", images(25), 0, "labels are uint8 [25 28 28], expected uint8 [n]"},
		{"labels of 16 bits", "train-labels-idx1-ubyte", idx(0x0B, []uint32{25}, make([]byte, 50)...), 0, "labels are int16 [25]"},
		{"labels for images", "t10k-images-idx3-ubyte", labels(12), 0, "images are uint8 [12], expected uint8 [n 28 28]"},
		{"other side", "t10k-images-idx3-ubyte", idx(0x08, []uint32{12, 28, 29}, make([]byte, 12*28*29)...), 0, "images are uint8 [12 28 29]"},
		{"floats for images", "t10k-images-idx3-ubyte", idx(0x0D, []uint32{1, 28, 28}, make([]byte, 4*28*28)...), 0, "images are float32"},
		{"malformed", "t10k-images-idx3-ubyte", []byte("<html>"), 0, "not an IDX file"},
		{"cut", "t10k-images-idx3-ubyte", images(12)[:1000], 4, "take more than 1000 bytes: the file ends too early"},
		{"empty", "train-labels-idx1-ubyte", nil, 0, "ends too early"},
	}
	for _, c := range cases {
		files := small(t)
		files[c.file] = c.bytes
		dir := write(t, files)
		_, _, err := MNIST(dir)
		var format *data.FormatError
		require.ErrorAs(t, err, &format, c.name)
		require.ErrorContains(t, err, c.want, c.name)
		require.Equal(t, filepath.Join(dir, c.file), format.Path, c.name)
		require.Equal(t, c.offset, format.Offset, c.name)
	}
	t.Logf("%d folders with one file that does not fit: %d typed errors that name it, 0 process deaths", len(cases), len(cases))
}

func TestMNISTMissingFiles(t *testing.T) {
	files := small(t)
	delete(files, "train-labels-idx1-ubyte")
	delete(files, "t10k-labels-idx1-ubyte.gz")
	dir := write(t, files)
	_, _, err := MNIST(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "files: mnist: train-labels-idx1-ubyte.gz, t10k-labels-idx1-ubyte.gz (packed or not) missing in the folder "+
		dir+"; put all four IDX files there, or call files.DownloadMNIST with the folder: file does not exist")

	_, _, err = MNIST(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, 4, strings.Count(err.Error(), "-ubyte"))
}

func TestMNISTSizeOfMessages(t *testing.T) {
	// A wrong file may have 255 axes; the message must stay readable.
	dims := make([]uint32, 255)
	for i := range dims {
		dims[i] = 1
	}
	files := small(t)
	files["t10k-images-idx3-ubyte"] = idx(0x08, dims, 1)
	_, _, err := MNIST(write(t, files))
	require.Error(t, err)
	require.Less(t, len(err.Error()), 2*math.MaxUint8+500)
}
