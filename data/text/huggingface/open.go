package huggingface

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/regular"
)

const limit = 256 << 20 // bytes of a file; Gemma's tokenizer.json has 33 MB

// Open reads a folder's tokenizer.json, or if there is none, its tokenizer.model: a regular file of at most 256 MiB.
func Open(folder string) (text.Tokenizer, error) {
	content, err := regular.Read(filepath.Join(folder, "tokenizer.json"), limit)
	if err == nil {
		return parse(content)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	model, err := regular.Read(filepath.Join(folder, "tokenizer.model"), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("huggingface: %s has no tokenizer.json and no tokenizer.model: %w", folder, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	return parseSentencePiece(model)
}

func parse(content []byte) (text.Tokenizer, error) {
	var head struct{ Model struct{ Type string } }
	if err := json.Unmarshal(content, &head); err != nil {
		return nil, fmt.Errorf("huggingface: tokenizer.json: %w", err)
	}
	switch head.Model.Type {
	case "WordPiece":
		return parseWordPiece(content)
	case "BPE", "":
		bpe := &text.BPE{}
		if err := json.Unmarshal(content, bpe); err != nil {
			return nil, fmt.Errorf("huggingface: %w", err)
		}
		return bpe, nil
	}
	return nil, fmt.Errorf("huggingface: tokenizer.json: its model is %s, expected BPE or WordPiece: go-huggingface v0.4.0 gives other ids than tokenizers for others",
		listed.Quoted(head.Model.Type))
}
