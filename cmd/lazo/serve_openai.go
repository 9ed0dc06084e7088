package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained/openai"
)

// onlyFor refuses flags that the served model would ignore.
func onlyFor(k *kong.Context, what string, names ...string) error {
	for _, name := range names {
		if given(k, name) {
			return fmt.Errorf("--%s is for %s", name, what)
		}
	}
	return nil
}

func given(k *kong.Context, flag string) bool {
	return slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == flag })
}

func (c serveCommand) pretrained(s session, log *slog.Logger) (err error) {
	o, err := openPretrained(s.ctx, c.Path, c.adapterFlag)
	if err != nil {
		return err
	}
	options := openai.Options{MaxBody: c.MaxBody, Timeout: c.Timeout, Log: log}
	if c.Key != "" {
		if options.Key = os.Getenv(c.Key); options.Key == "" {
			return fmt.Errorf("--key is %s, an environment variable that is empty, expected one with the key", c.Key)
		}
	}
	var m openai.Model
	if m.Tokenizer, err = o.Tokenizer(); err != nil {
		return err
	}
	switch {
	case len(o.is.Pooling) == 0 && o.needs(causalHead) == nil:
		l, err := openLanguage(s.ctx, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		if m.Generation = l.generation; m.Generation.Most == 0 {
			m.Generation.Most = 256
		}
		if m.Generator, err = l.network.Generator(l.state, 1, l.places(c.Places)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Generator.Close()) }()
	case o.embeds() == nil:
		o.exact()
		embedder, err := flaxlike.New(s.ctx, o.with(o.Embedder()))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, embedder.Close()) }()
		m.Embedder, m.Longest = embedder, o.is.Sizes["max_seq_length"]
	default:
		return fmt.Errorf("%s has the heads %q, expected one that ends with %s, or a folder of embeddings, of sentence-transformers or without a head", c.Path, o.is.Heads, causalHead)
	}
	name := c.Name
	if name == "" {
		name = nameOf(c.Path)
	}
	handler, err := openai.NewHandler(map[string]openai.Model{name: m}, options)
	if err != nil {
		return err
	}
	return c.listen(s, log, handler, "/v1", func() {}, nil)
}

// The hub's name of a folder of its cache, else a path's last part.
func nameOf(path string) string {
	path = absolute(path)
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if name, ok := strings.CutPrefix(filepath.Base(dir), "models--"); ok {
			return strings.ReplaceAll(name, "--", "/")
		}
	}
	return strings.TrimSuffix(filepath.Base(path), ggufSuffix)
}
