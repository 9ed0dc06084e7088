package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lazo-ml/lazo/data"
)

const (
	mnistSide   = 28
	mnistLabels = 10
)

// MNIST reads the four files of the MNIST database, or of a similar one like Fashion-MNIST, from a folder:
// train-images-idx3-ubyte and so on, plain or .gz.
//
// Field "x" is float32 [n, 28, 28, 1], 0 to 1; "y" is int32 [n]. A malformed file is a [*data.FormatError]; the error
// for missing files wraps fs.ErrNotExist.
func MNIST(dir string) (train, test *data.Set, err error) {
	paths, err := mnistPaths(dir)
	if err == nil {
		train, err = readMNIST(paths[0], paths[1])
	}
	if err == nil {
		test, err = readMNIST(paths[2], paths[3])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("files: mnist: %w", err)
	}
	return train, test, nil
}

func mnistPaths(dir string) ([]string, error) {
	var paths, missing []string
	for _, f := range mnistFiles {
		path := filepath.Join(dir, f.Name)
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			path = strings.TrimSuffix(path, ".gz")
			_, err = os.Stat(path)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f.Name)
		case err != nil:
			return nil, err
		}
		paths = append(paths, path)
	}
	if missing != nil {
		return nil, fmt.Errorf("%s (packed or not) missing in the folder %s; put all four IDX files there, or call files.DownloadMNIST with the folder: %w",
			strings.Join(missing, ", "), dir, fs.ErrNotExist)
	}
	return paths, nil
}

func readMNIST(imagesPath, labelsPath string) (*data.Set, error) {
	pixels, n, err := readPixels(imagesPath)
	if err != nil {
		return nil, err
	}
	labels, err := readLabels(labelsPath, imagesPath, n)
	if err != nil {
		return nil, err
	}
	var scaled [256]float32
	for i := range scaled {
		scaled[i] = float32(i) / 255
	}
	x := make([]float32, len(pixels))
	for i, p := range pixels {
		x[i] = scaled[p]
	}
	return data.New(data.X(x, n, mnistSide, mnistSide, 1), data.Y(labels, n))
}

func readPixels(path string) (pixels []uint8, n int, err error) {
	a, err := openIDX(path)
	if err != nil {
		return nil, 0, err
	}
	pixels, ok := a.Flat.([]uint8)
	if !ok || len(a.Dims) != 3 || a.Dims[1] != mnistSide || a.Dims[2] != mnistSide {
		return nil, 0, mnistErrorf(path, 0, "images are %s %v, expected uint8 [n %d %d]", a.DType(), a.Dims, mnistSide, mnistSide)
	}
	return pixels, a.Len(), nil
}

func readLabels(path, imagesPath string, n int) ([]int32, error) {
	a, err := openIDX(path)
	if err != nil {
		return nil, err
	}
	labels, ok := a.Flat.([]uint8)
	if !ok || len(a.Dims) != 1 {
		return nil, mnistErrorf(path, 0, "labels are %s %v, expected uint8 [n]", a.DType(), a.Dims)
	}
	if len(labels) != n {
		return nil, mnistErrorf(path, idxPreamble, "%d labels, but %d images in %s", len(labels), n, imagesPath)
	}
	y := make([]int32, n)
	for i, l := range labels {
		if l >= mnistLabels {
			return nil, mnistErrorf(path, int64(idxPreamble+4+i), "label %d of example %d, expected 0 to %d", l, i, mnistLabels-1)
		}
		y[i] = int32(l)
	}
	return y, nil
}

func mnistErrorf(path string, offset int64, format string, args ...any) error {
	return &data.FormatError{Path: path, Offset: offset, Err: fmt.Errorf(format, args...)}
}
