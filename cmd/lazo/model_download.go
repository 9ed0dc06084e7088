package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/pretrained"
)

type modelDownload struct {
	Name     string   `arg:"" help:"Name on the Hugging Face hub, as sentence-transformers/all-MiniLM-L6-v2."`
	Revision string   `placeholder:"NAME" help:"Branch, tag or commit; main if it is not given."`
	Files    []string `placeholder:"PATTERN" help:"Files to download, as *Q8_0.gguf; those that lazo reads if it is not given."`
	Cache    string   `placeholder:"FOLDER" help:"Folder for the files, in place of that of Python's huggingface_hub: $HF_HUB_CACHE, or hub in $HF_HOME, or in huggingface in $XDG_CACHE_HOME or ~/.cache. $HF_TOKEN is the token for private and gated models, $HF_ENDPOINT another hub."`
}

func (c modelDownload) Run(s session) error {
	cache := cmp.Or(c.Cache, os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE"))
	if home := os.Getenv("HF_HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, "hub")
	}
	if cache == "" {
		of := os.Getenv("XDG_CACHE_HOME")
		if of == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return fmt.Errorf("%w: give --cache", err)
			}
			of = filepath.Join(home, ".cache")
		}
		cache = filepath.Join(of, "huggingface", "hub")
	}
	folder, err := pretrained.Download(s.ctx, c.Name, pretrained.Hub{Cache: cache, Endpoint: os.Getenv("HF_ENDPOINT"), Token: os.Getenv("HF_TOKEN"),
		Revision: c.Revision, Files: c.Files, Progress: downloaded(s.stderr)})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.stdout, plain(folder))
	return err
}

func downloaded(w io.Writer) func(file string, done, total int64) {
	moving, last, before := onTerminal(w), "", int64(-1)
	return func(file string, done, total int64) {
		if file != last {
			line(w, "download", "%s, %.1f MB", file, float64(total)/1e6)
			last, before = file, -1
		}
		if percent := done * 100 / max(1, total); moving && percent != before {
			before = percent
			fmt.Fprintf(w, "\r%8d%%\r", percent)
		}
	}
}
