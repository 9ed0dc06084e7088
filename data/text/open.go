package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/lazo-ml/lazo/internal/document"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/regular"
)

const (
	mostFile     = 256 << 20 // bytes; Gemma's tokenizer.json has 33 MB
	mostSettings = 16 << 20
)

type settings struct {
	roles    map[string]string
	template string
	most     int
	left     bool // texts are truncated at their beginning
}

// Open reads a folder of the Hugging Face hub, or one file .json or .model. Of a folder it reads tokenizer.json, or
// else sentencepiece's tokenizer.model, and tokenizer_config.json, special_tokens_map.json and chat_template.jinja if
// they exist, each of at most 256 MiB.
func Open(path string) (*Tokenizer, error) {
	t, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("text: %w", listed.Short(err))
	}
	return t, nil
}

func open(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return openFile(path)
	}
	t, err := openFile(filepath.Join(path, "tokenizer.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if t, err = openFile(filepath.Join(path, "tokenizer.model")); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s has no tokenizer.json and no tokenizer.model: %w", path, fs.ErrNotExist)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := t.settings.read(path); err != nil {
		return nil, err
	}
	return t, nil
}

func openFile(path string) (t *Tokenizer, err error) {
	content, err := regular.Read(path, mostFile)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".model") {
		t, err = readSentencePiece(content)
	} else {
		t, err = parse(content)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

type named string

func (n *named) UnmarshalJSON(text []byte) error {
	var token struct {
		Content string `json:"content" exact:"required"`
	}
	if len(text) > 0 && text[0] == '{' {
		err := document.Exact(text, &token, false)
		*n = named(token.Content)
		return err
	}
	return json.Unmarshal(text, (*string)(n))
}

type settingsFile struct {
	BOS      *named          `json:"bos_token"`
	EOS      *named          `json:"eos_token"`
	Unknown  *named          `json:"unk_token"`
	Pad      *named          `json:"pad_token"`
	Cls      *named          `json:"cls_token"`
	Sep      *named          `json:"sep_token"`
	Mask     *named          `json:"mask_token"`
	Most     *float64        `json:"model_max_length"`
	Side     *string         `json:"truncation_side"`
	Template json.RawMessage `json:"chat_template"`
}

func (s *settings) read(folder string) error {
	s.roles = map[string]string{}
	for _, name := range []string{"special_tokens_map.json", "tokenizer_config.json"} {
		content, err := regular.Read(filepath.Join(folder, name), mostSettings)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		var f settingsFile
		if err := document.Exact(content, &f, false); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
		}
		for role, token := range map[string]*named{"bos": f.BOS, "eos": f.EOS, "unk": f.Unknown, "pad": f.Pad, "cls": f.Cls, "sep": f.Sep, "mask": f.Mask} {
			if token != nil && *token != "" {
				s.roles[role] = string(*token)
			}
		}
		if f.Most != nil && *f.Most >= 1 && *f.Most <= math.MaxInt32 { // transformers' 1e30 is no limit
			s.most = int(*f.Most)
		}
		if f.Side != nil {
			if *f.Side != "left" && *f.Side != "right" {
				return fmt.Errorf("%s: truncation_side is %s, expected left or right", filepath.Join(folder, name), quoted(*f.Side))
			}
			s.left = *f.Side == "left"
		}
		if s.template, err = templateOf(f.Template); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
		}
	}
	content, err := regular.Read(filepath.Join(folder, "chat_template.jinja"), mostSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s.template = string(content)
	return err
}

func templateOf(part json.RawMessage) (string, error) {
	if absent(part) {
		return "", nil
	}
	var template string
	if part[0] == '"' {
		err := json.Unmarshal(part, &template)
		return template, err
	}
	var several []struct {
		Name     string `json:"name" exact:"required"`
		Template string `json:"template" exact:"required"`
	}
	if err := document.Exact(part, &several, false); err != nil {
		return "", fmt.Errorf("chat_template: %w", err)
	}
	for _, t := range several {
		if t.Name == "default" {
			template = t.Template
		}
	}
	return template, nil
}
