package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const ggufSuffix = ".gguf"

// A folder of the hub or a file .gguf, not a saved model or a folder of these.
func isPretrained(path string) bool {
	_, err := os.Stat(filepath.Join(path, "config.json"))
	return err == nil || filepath.Ext(path) == ggufSuffix
}

func needModel(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w: expected a file of a saved model, a folder of the Hugging Face hub, or a file %s; lazo model download fetches one of the hub", err, ggufSuffix)
	}
	return nil
}

type adapterFlag struct {
	Adapter string `help:"Folder with adapter_config.json, of peft or lazo, for this model of the hub."`
}

type opened struct {
	*pretrained.Base
	adapterFlag
	path string
	is   pretrained.Description
}

func (o opened) with(n *pretrained.Network) *pretrained.Network {
	if o.Adapter == "" {
		return n
	}
	return n.LoadAdapter(o.Adapter)
}

func openPretrained(ctx context.Context, path string, with adapterFlag) (o opened, err error) {
	if err := needModel(path); err != nil {
		return o, err
	}
	adapter, err := adapterOf(path)
	switch {
	case err != nil:
		return o, err
	case !isPretrained(path) && adapter == nil:
		return o, fmt.Errorf("%s has no config.json, expected a folder of the Hugging Face hub or a file %s", path, ggufSuffix)
	case adapter != nil: // transformers applies it
		return o, fmt.Errorf("%s has an adapter, in adapter_config.json, expected a model alone: give the folder of its base, and --adapter %s", path, path)
	}
	base, err := pretrained.Open(ctx, path)
	if err != nil {
		return o, err
	}
	return opened{base, with, path, base.Describe()}, nil
}

type adapter struct {
	Kind    string  `json:"peft_type"`
	Base    string  `json:"base_model_name_or_path"`
	Rank    int     `json:"r"`
	Alpha   float64 `json:"lora_alpha"`
	Targets any     `json:"target_modules"`
}

func (a adapter) String() string {
	return fmt.Sprintf("adapter    %s of rank %d, alpha %g, for %v\nof         %s", a.Kind, a.Rank, a.Alpha, a.Targets, a.Base)
}

func adapterOf(folder string) (*adapter, error) {
	const name = "adapter_config.json"
	if filepath.Ext(folder) == ggufSuffix {
		return nil, nil
	}
	content, err := regular.Read(filepath.Join(folder, name), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	a := new(adapter)
	if err == nil {
		err = json.Unmarshal(content, a)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
	}
	return a, nil
}

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

func (o opened) embeds() error {
	if len(o.is.Pooling) == 0 && (len(o.is.Heads) > 0 || filepath.Ext(o.path) == ggufSuffix) {
		return fmt.Errorf("%s is of the class %q and has no modules.json, expected a folder of sentence-transformers, or an encoder without a head", o.path, o.is.Classes)
	}
	return nil
}

// float32's numbers are closest to the model's.
func (o opened) exact() { o.DType = dtypes.Float32 }

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
	if l.runtime, err = xla.Open(ctx, xla.CPU); err != nil {
		return nil, err
	}
	l.network = o.with(o.CausalLM())
	if l.state, err = managed.New(strategies.Jit(l.runtime), l.network.Weights()); err != nil {
		return nil, errors.Join(err, l.runtime.Close())
	}
	return l, nil
}

func (l *language) places(n int) int {
	if most := l.is.Sizes["max_position_embeddings"]; most > 0 {
		return min(n, most)
	}
	return n
}

func (l *language) Close() error { return errors.Join(l.state.Close(), l.runtime.Close()) }
