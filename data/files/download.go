package files

import (
	"cmp"
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

// Download has settings of [DownloadMNIST].
type Download struct {
	// URL is a mirror's, which has the file at URL/<file name>, over https. "" means Google's.
	URL string
	// HTTP replaces the client.
	HTTP *http.Client
	// Progress, unless nil, is called after each received piece, with the bytes of the current file.
	Progress func(file string, done, total int64)
}

// DownloadMNIST downloads the four gzip-compressed files of the MNIST database, 12 MB, into a folder, which it
// creates. It keeps files with the right SHA-256 digest and replaces others.
func DownloadMNIST(ctx context.Context, dir string, from Download) error {
	if err := from.fetch(ctx, dir, mnistFiles[:]); err != nil {
		return fmt.Errorf("files: download mnist: %w", err)
	}
	return nil
}

func (d Download) fetch(ctx context.Context, dir string, files []fetch.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		path := filepath.Join(dir, f.Name)
		if fetch.VerifyFile(path, f.Size, f.SHA256) == nil {
			continue
		}
		f.URL = strings.TrimSuffix(cmp.Or(d.URL, mnistURL), "/") + "/" + f.Name
		client := fetch.Client{HTTP: d.HTTP}
		if d.Progress != nil {
			client.Progress = func(done, total int64) { d.Progress(f.Name, done, total) }
		}
		arrived, err := client.Download(ctx, f, dir)
		if err != nil {
			return err
		}
		err = os.Chmod(arrived, 0o644) // Client's files are closed to other users
		if err == nil {
			err = os.Rename(arrived, path)
		}
		if err != nil {
			os.Remove(arrived)
			return err
		}
	}
	return nil
}
