package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

func load(ctx context.Context, name string, stderr io.Writer) (train, test *data.Set, err error) {
	switch name {
	case "digits":
		return data.Digits()
	case "mnist":
		cache, err := os.UserCacheDir()
		if err == nil && !filepath.IsAbs(cache) {
			err = fmt.Errorf("%q is not an absolute path", cache)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("where to keep MNIST: %w (give -data a folder with the four files)", err)
		}
		dir := filepath.Join(cache, "lazo", "mnist")
		fmt.Fprintf(stderr, "MNIST in %s (downloaded if missing)\n", dir)
		if err := data.DownloadMNIST(ctx, dir, data.WithProgress(progress(stderr))); err != nil {
			return nil, nil, fmt.Errorf("%w (or give -data a folder with the four files)", err)
		}
		return data.MNIST(dir)
	}
	files, err := os.ReadDir(name)
	if err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(files, os.DirEntry.IsDir) {
		return data.MNIST(name)
	}
	return images(name)
}

// progress prints a line for each tenth of a file.
func progress(w io.Writer) func(file string, done, total int64) {
	last := int64(0)
	return func(file string, done, total int64) {
		if tenths := done * 10 / total; tenths != last {
			fmt.Fprintf(w, "download %s: %3d %% of %.1f MB\n", file, done*100/total, float64(total)/1e6)
			last = tenths
		}
	}
}

// images uses a fifth of a folder's images, grey 28x28, as test set.
func images(dir string) (train, test *data.Set, err error) {
	folder, err := data.OpenImageFolder(dir, data.ImageFormat{Height: 28, Width: 28, Channels: 1, Resize: data.Stretch})
	if err != nil {
		return nil, nil, err
	}
	if n := len(folder.Classes); n > classes {
		return nil, nil, fmt.Errorf("%s has %d folders, expected at most %d, one for each class", dir, n, classes)
	}
	return folder.Set().Split(0.8, 0, data.Stratified("y"))
}

func dataOrder(c config) []data.Option {
	return []data.Option{data.Shuffle(uint64(c.seed))}
}
