package pretrained

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gomlx/compute/dtypes"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/dtype"
)

// Base is an opened folder. Its methods make networks of its weights with a head for a task. Base keeps no file open.
type Base struct {
	// DType is that of the variables of networks that are made later: Float32, Float16 or BFloat16. Open sets that of
	// the files.
	DType dtypes.DType
	// Recompute lets the gradient compute each layer's values again, in networks made later: training takes less
	// memory and more time, with the same numbers. It is transformers' gradient_checkpointing.
	Recompute bool
	// Quantized keeps a file .gguf's Q8_0 and Q4_0 tensors in their blocks on the device, in networks made later.
	// They are not trained, and become DType where a layer uses them.
	Quantized bool

	folder  string
	file    string
	fields  map[string]json.RawMessage // of it
	family  func(*config) *family
	classes []string // of transformers
	labels  []string
	images  map[string]json.RawMessage // preprocessor_config.json's
	tensors map[string]stored

	tokenizer func() (*text.Tokenizer, error)
}

// Open reads config.json and the headers of model.safetensors, or of the shards in model.safetensors.index.json, and
// checks the names and shapes of the tensors. Instead of a folder it takes a file .gguf, whose quantized tensors become
// float32. Files are untrusted. It reads no weights.
//
// Errors: missing or damaged files, an unknown architecture, unimplemented fields of config.json that would change
// numbers, and tensors that are missing or have other shapes than in config.json.
func Open(ctx context.Context, folder string) (*Base, error) {
	b, err := open(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("pretrained: open %s: %w", folder, err)
	}
	return b, nil
}

func open(ctx context.Context, folder string) (*Base, error) {
	var (
		c       *config
		tensors map[string]stored
		err     error
	)
	tokenizer := func() (*text.Tokenizer, error) { return text.Open(folder) }
	if filepath.Ext(folder) == ggufExt {
		var g *ggufFile
		if g, err = readGGUF(folder); err == nil {
			c, tensors, err = g.model()
			tokenizer = g.tokenizer
		}
	} else {
		c, err = readConfig(folder, configFile, mostText)
	}
	if err != nil {
		return nil, err
	}
	of, known := families[c.text("model_type", "")]
	if !known {
		c.fail("model_type", "one of %q", slices.Sorted(maps.Keys(families)))
	}
	b := &Base{folder: folder, file: c.file, fields: c.fields, family: of, classes: c.texts("architectures"), labels: c.labels(), tensors: tensors,
		tokenizer: sync.OnceValues(tokenizer)}
	if c.err != nil {
		return nil, c.err
	}
	if tensors == nil {
		if b.images, err = readImages(folder); err != nil {
			return nil, err
		}
		if b.tensors, err = readTensors(ctx, folder); err != nil {
			return nil, err
		}
	}
	f, err := b.describe(1)
	if err != nil {
		return nil, err
	}
	weights, err := b.take(f.prefix, f.listed(f.body))
	if err != nil {
		return nil, err
	}
	b.DType = dtypes.DType(dtype.InFiles(weights[0].stored.DType.String()))
	return b, nil
}

func (b *Base) describe(classes int) (*family, error) {
	c := &config{file: b.file, fields: b.fields, chosen: chosen{b.DType, b.Recompute}, classes: classes, images: b.images, tensors: b.tensors}
	f := b.family(c)
	if c.err == nil && f.layers > len(b.tensors) {
		c.err = fmt.Errorf("%s: the model has %d layers, and the folder only %d tensors", b.file, f.layers, len(b.tensors))
	}
	return f, c.err
}

// find accepts names with the prefix or without.
func (b *Base) find(prefix string, t tensor) (*stored, error) {
	names := []string{prefix + t.name, t.name}
	if t.older != "" {
		names = append(names, prefix+t.older, t.older)
	}
	return named(b.tensors, t, b.file, names...)
}

func named(tensors map[string]stored, t tensor, by string, names ...string) (*stored, error) {
	for _, name := range names {
		s, there := tensors[name]
		switch {
		case !there:
			continue
		case !slices.Equal(s.Dims, t.dims):
			return nil, fmt.Errorf("the tensor %q has the shape %v, expected %v by %s", name, s.Dims, t.dims, by)
		case t.count && s.DType == safetensors.I64:
		case numbers[s.DType].read == nil || t.count:
			return nil, fmt.Errorf("the tensor %q is of %s, expected F32, F16 or BF16, and I64 for a number of batches", name, s.DType)
		}
		return &s, nil
	}
	return nil, fmt.Errorf("the folder has no tensor %q", names[0])
}

func (b *Base) take(prefix string, rows []tensor) (all []weight, err error) {
	const most = 3 // enough for a message
	var errs []error
	n := 0
	for _, t := range rows {
		s, err := b.find(prefix, t)
		if err != nil {
			if n++; n <= most {
				errs = append(errs, err)
			}
		}
		all = append(all, weight{tensor: t, stored: s})
	}
	if n > most {
		errs = append(errs, fmt.Errorf("and %d more", n-most))
	}
	return all, errors.Join(errs...)
}

func fileDType(d dtypes.DType) (safetensors.DType, error) {
	t, err := safetensors.ParseDType(dtype.Type(d).InFile())
	if err != nil || numbers[t].read == nil {
		return 0, fmt.Errorf("the DType is %s, expected Float32, Float16 or BFloat16", d)
	}
	return t, nil
}
