package data

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/lazo-ml/lazo/internal/fetch"
)

// The database's own page lacks the files.
const mnistURL = "https://storage.googleapis.com/cvdf-datasets/mnist/"

var mnistFiles = [...]fetch.File{
	{Name: "train-images-idx3-ubyte.gz", Size: 9_912_422, SHA256: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
	{Name: "train-labels-idx1-ubyte.gz", Size: 28_881, SHA256: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
	{Name: "t10k-images-idx3-ubyte.gz", Size: 1_648_877, SHA256: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
	{Name: "t10k-labels-idx1-ubyte.gz", Size: 4_542, SHA256: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
}

// DownloadOption is an option of [DownloadMNIST].
type DownloadOption func(*download)

// FromURL downloads from the mirror base/<file name>, an https address.
func FromURL(base string) DownloadOption { return func(d *download) { d.base = base } }

// WithHTTP downloads with your own client.
func WithHTTP(client *http.Client) DownloadOption {
	return func(d *download) { d.client.HTTP = client }
}

// WithProgress calls f after each received piece, with the done and total bytes of the current file.
func WithProgress(f func(file string, done, total int64)) DownloadOption {
	return func(d *download) { d.progress = f }
}

type download struct {
	base     string
	files    []fetch.File
	client   fetch.Client
	progress func(file string, done, total int64)
}

// DownloadMNIST downloads the four gzip-compressed files of the MNIST database, 12 MB, into a folder, which it creates
// if needed. It verifies sizes and SHA-256 digests, keeps correct files and replaces wrong ones.
func DownloadMNIST(ctx context.Context, dir string, opts ...DownloadOption) error {
	d := download{base: mnistURL, files: mnistFiles[:]}
	for _, opt := range opts {
		if opt != nil {
			opt(&d)
		}
	}
	if err := d.run(ctx, dir); err != nil {
		return fmt.Errorf("data: download mnist: %w", err)
	}
	return nil
}

func (d download) run(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, f := range d.files {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		path := filepath.Join(dir, f.Name)
		if fetch.VerifyFile(path, f.Size, f.SHA256) == nil {
			continue
		}
		f.URL = strings.TrimSuffix(d.base, "/") + "/" + f.Name
		if d.progress != nil {
			d.client.Progress = func(done, total int64) { d.progress(f.Name, done, total) }
		}
		arrived, err := d.client.Download(ctx, f, dir)
		if err != nil {
			return err
		}
		if err := os.Rename(arrived, path); err != nil {
			os.Remove(arrived)
			return err
		}
	}
	return nil
}
