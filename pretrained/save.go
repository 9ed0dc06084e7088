package pretrained

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/regular"
)

// Values are the values of a network's variables: a flaxlike.Model or a managed.State.
type Values interface {
	Value(name string) (*tensors.Tensor, error)
}

var copied = []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt",
	"sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "chat_template.jinja", "generation_config.json", imagesFile}

// Save writes a folder that transformers loads, with the network's values in a model, or the folder's if model is
// nil: config.json with the classes of Labels, model.safetensors, and the tokenizer's files, also of a file .gguf if
// lazo has its tokenizer. It makes the folder, and replaces these files. Do not train the model meanwhile.
func (n *Network) Save(folder string, model Values) error {
	err := n.err
	if err == nil {
		err = n.save(folder, model)
	}
	if err != nil {
		return fmt.Errorf("pretrained: save %s: %w", folder, err)
	}
	return nil
}

func (n *Network) save(folder string, model Values) error {
	if filepath.Ext(folder) == ggufExt {
		return fmt.Errorf("the name ends with %s, expected that of a folder: Network.SaveGGUF writes such a file", ggufExt)
	}
	if err := absent(folder, adapterFile, "transformers would add that adapter to this model"); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	to, err := fileDType(n.family.dtype)
	if err != nil {
		return err
	}
	config, err := n.config(to)
	if err != nil {
		return err
	}
	names, files := copied, maps.Clone(n.sentences)
	if filepath.Ext(n.base.folder) == ggufExt {
		names = nil
		more, err := n.base.tokenizerFiles()
		if err != nil {
			return err
		}
		if files == nil {
			files = map[string][]byte{}
		}
		maps.Copy(files, more)
	}
	names = slices.Concat(names, slices.Sorted(maps.Keys(files)))
	for _, name := range names {
		text, err := files[name], error(nil)
		if text == nil {
			text, err = regular.Read(filepath.Join(n.base.folder, name), mostText)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			to := filepath.Join(folder, name) // also in a folder of this one
			err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), regular.Replace(to, func(f *os.File) error { _, err := f.Write(text); return err }))
		}
		if err != nil {
			return err
		}
	}
	of := map[string]weight{}
	for _, w := range n.weights {
		of[n.savedName(w)] = w
	}
	if err := regular.Replace(filepath.Join(folder, weightsFile), func(f *os.File) error { return n.write(f, of, to, model) }); err != nil {
		return err
	}
	return regular.Replace(filepath.Join(folder, configFile), func(f *os.File) error { _, err := f.Write(config); return err })
}

func absent(folder, name, why string) error {
	if _, err := os.Stat(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("it has %s: %s: use another folder", name, why), err)
	}
	return nil
}

func (n *Network) write(to io.Writer, of map[string]weight, dtype safetensors.DType, model Values) error {
	var list []safetensors.Tensor
	for name, w := range of {
		t := safetensors.Tensor{Name: name, DType: dtype, Dims: w.dims}
		if w.count {
			t.DType = safetensors.I64
		}
		list = append(list, t)
	}
	safetensors.Sort(list)
	out, err := safetensors.NewWriter(to, list, map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	for _, t := range list {
		if _, err := out.WriteFunc(t.Name, func(to io.Writer) error { return n.writeTensor(to, of[t.Name], t.DType, model) }); err != nil {
			return err
		}
	}
	return out.Close()
}

func (n *Network) writeTensor(to io.Writer, w weight, dtype safetensors.DType, model Values) error {
	if model == nil {
		if w.stored == nil || n.adapter != nil {
			return fmt.Errorf("the variable %s or an addition is not in the folder, expected a model with its values", w.variable())
		}
		return w.stored.writeTo(to, dtype, tensor{})
	}
	write := func(data []byte) error {
		data, err := n.merged(w, data, dtype, model)
		if err == nil && w.transposed {
			return w.writeBack(to, data, dtype.Bits()/8)
		}
		if err == nil {
			_, err = to.Write(data)
		}
		return err
	}
	if w.packed {
		data, err := w.unpacked(model)
		if err != nil {
			return err
		}
		return write(data)
	}
	value, err := valueOf(model, w.variable(), w.dtype, w.shape()...)
	if err != nil {
		return err
	}
	inner := value.ConstBytes(func(data []byte) {
		if !w.count {
			err = write(data)
			return
		}
		var own safetensors.DType
		if own, err = fileDType(w.dtype); err == nil {
			_, err = to.Write(count(data, own))
		}
	})
	return errors.Join(inner, err)
}

func valueOf(model Values, name string, dtype dtypes.DType, dims ...int) (*tensors.Tensor, error) {
	value, err := model.Value(name)
	if err != nil {
		return nil, err
	}
	if got := value.Shape(); !slices.Equal(got.Dimensions, dims) || got.DType != dtype {
		return nil, fmt.Errorf("the variable %s is %s, expected (%s)%v: is the model made of this network?", name, got, dtype, dims)
	}
	return value, nil
}

func (t tensor) writeBack(to io.Writer, data []byte, width int) error {
	out, in, places := t.dims[0], t.dims[1], t.places()
	if places == 1 {
		return writeColumns(to, data, in, out, width)
	}
	var columns bytes.Buffer
	if err := writeColumns(&columns, data, places*in, out, width); err != nil {
		return err
	}
	_, err := to.Write(swapped(columns.Bytes(), out, places, in, width))
	return err
}

func (b *Base) tokenizerFiles() (map[string][]byte, error) {
	t, err := b.tokenizer()
	if err != nil {
		return nil, nil
	}
	settings := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	for _, role := range slices.Sorted(maps.Keys(ggufRoles)) {
		if id, there := t.Special(role); there {
			settings[role+"_token"], _ = t.Token(id)
		}
	}
	if t.ChatTemplate() != "" {
		settings["chat_template"] = t.ChatTemplate()
	}
	tokenizer, err := t.MarshalJSON()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(settings, "", "  ")
	return map[string][]byte{"tokenizer.json": tokenizer, "tokenizer_config.json": append(text, '\n')}, err
}

func (n *Network) savedName(w weight) string {
	if w.head || n.task == bare {
		return w.name
	}
	return n.family.prefix + w.name
}

func (n *Network) config(to safetensors.DType) ([]byte, error) {
	fields := maps.Clone(n.base.fields)
	var errs []error
	set := func(name string, value any) {
		text, err := json.Marshal(value)
		fields[name], errs = text, append(errs, err)
	}
	set("architectures", []string{n.family.classOf(n.task)})
	delete(fields, "torch_dtype") // the older name
	set("dtype", map[dtypes.DType]string{dtypes.Float32: "float32", dtypes.Float16: "float16", dtypes.BFloat16: "bfloat16"}[n.family.dtype])
	if n.Labels != nil {
		names, numbers := map[string]string{}, map[string]int{}
		for i, name := range n.Labels {
			names[strconv.Itoa(i)], numbers[name] = name, i
		}
		if len(numbers) != len(n.Labels) {
			errs = append(errs, fmt.Errorf("the Labels %q have a name twice, expected a name for each class", n.Labels))
		}
		delete(fields, "num_labels")
		if len(n.Labels) != len(n.base.labels) {
			delete(fields, "problem_type") // of another head
		}
		set("id2label", names)
		set("label2id", numbers)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return indented(fields)
}

func indented(fields map[string]json.RawMessage) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, text, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}
