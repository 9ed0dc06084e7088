package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const ggufSuffix = ".gguf"

// isPretrained tells folders of the hub and files .gguf from saved models and their folders.
func isPretrained(path string) bool {
	_, err := os.Stat(filepath.Join(path, "config.json"))
	return err == nil || filepath.Ext(path) == ggufSuffix
}

// opened is a folder of the hub, or a file .gguf.
type opened struct {
	*pretrained.Base
	path string
	is   pretrained.Description
}

func openPretrained(ctx context.Context, path string) (o opened, err error) {
	if _, err := os.Stat(path); err != nil {
		return o, fmt.Errorf("%w: expected a folder of the Hugging Face hub or a file %s; lazo model download fetches one", err, ggufSuffix)
	}
	if !isPretrained(path) {
		return o, fmt.Errorf("%s has no config.json, expected a folder of the Hugging Face hub or a file %s", path, ggufSuffix)
	}
	base, err := pretrained.Open(ctx, path)
	if err != nil {
		return o, err
	}
	o = opened{base, path, base.Describe()}
	if o.is.Adapter != "" { // transformers applies it
		return o, fmt.Errorf("%s has an adapter beside the model, expected none: merge it in Go, by Network.LoadAdapter and Network.Save, or remove adapter_config.json", path)
	}
	return o, nil
}

// needs refuses a folder that lacks a head.
func (o opened) needs(head string) error {
	if !slices.ContainsFunc(o.is.Heads, func(class string) bool { return strings.HasSuffix(class, head) }) {
		return fmt.Errorf("%s is of the class %q and has the heads %q, expected one that ends with %s: lazo model show lists what it has", o.path, o.is.Classes, o.is.Heads, head)
	}
	return nil
}

const (
	causalHead     = "ForCausalLM"
	classifierHead = "ForSequenceClassification"
)

// exact computes in float32, whose numbers are closest to the model's.
func (o opened) exact() { o.DType = dtypes.Float32 }

// language is a model that continues texts.
type language struct {
	opened
	tokenizer  *text.Tokenizer
	generation pretrained.Generation
	runtime    *xla.Runtime
	state      *managed.State
	network    *pretrained.Network
}

func openLanguage(ctx context.Context, o opened) (*language, error) {
	l := &language{opened: o}
	err := o.needs(causalHead)
	if err == nil {
		l.tokenizer, err = o.Tokenizer()
	}
	if err == nil {
		l.generation, err = o.Generation()
	}
	if err != nil {
		return nil, err
	}
	l.generation.Tokenizer = l.tokenizer
	if l.runtime, err = xla.Open(ctx, xla.CPU); err != nil {
		return nil, err
	}
	l.network = o.CausalLM()
	if l.state, err = managed.New(strategies.Jit(l.runtime), l.network.Weights()); err != nil {
		return nil, errors.Join(err, l.runtime.Close())
	}
	return l, nil
}

// places bounds a number of places by the model's.
func (l *language) places(n int) int {
	if most := l.is.Sizes["max_position_embeddings"]; most > 0 {
		return min(n, most)
	}
	return n
}

func (l *language) Close() error { return errors.Join(l.state.Close(), l.runtime.Close()) }
