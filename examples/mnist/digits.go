package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/data"
)

// load gives the training and the test set of -data.
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
		fmt.Fprintf(stderr, "MNIST in %s (downloaded if it is not there)\n", dir)
		if err := data.DownloadMNIST(ctx, dir); err != nil {
			return nil, nil, fmt.Errorf("%w (or give -data a folder with the four files)", err)
		}
		return data.MNIST(dir)
	}
	return data.MNIST(name)
}

// dataOrder is a new order in each epoch, by the seed.
func dataOrder(c config) []data.Option {
	return []data.Option{data.Shuffle(uint64(c.seed)), data.Epochs(c.epochs)}
}
