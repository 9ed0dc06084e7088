package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/files"
	"github.com/lazo-ml/lazo/data/images"
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
		if err := files.DownloadMNIST(ctx, dir, files.Download{Progress: progress(stderr)}); err != nil {
			return nil, nil, fmt.Errorf("%w (or give -data a folder with the four files)", err)
		}
		return files.MNIST(dir)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(entries, os.DirEntry.IsDir) {
		return files.MNIST(name)
	}
	return folder(name)
}

func progress(w io.Writer) func(file string, done, total int64) {
	last := int64(0)
	return func(file string, done, total int64) {
		if tenths := done * 10 / total; tenths != last {
			fmt.Fprintf(w, "download %s: %3d %% of %.1f MB\n", file, done*100/total, float64(total)/1e6)
			last = tenths
		}
	}
}

// folder uses a fifth of a folder's images, grey 28x28, as test set.
func folder(dir string) (train, test *data.Set, err error) {
	all, err := images.Open(dir, images.Format{Height: 28, Width: 28, Channels: 1, Resize: images.Stretch})
	if err != nil {
		return nil, nil, err
	}
	if n := len(all.Classes("y")); n > classes {
		return nil, nil, fmt.Errorf("%s has %d folders, expected at most %d, one for each class", dir, n, classes)
	}
	return all.Split(0.8, 0, data.Stratified("y"))
}

func dataOrder(c config) []data.Option {
	return []data.Option{data.Shuffle(uint64(c.seed))}
}
