package main

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
)

const (
	endOfText = "<|endoftext|>"
	fewest    = 100_000
)

// corpus is a tokenized text. Each tenth file is held out.
type corpus struct {
	tokens        *text.Tokenizer
	end           int32
	training      []int32
	heldBack      []int32
	tokensPerByte float64 // of the held-out text
}

// all .md and .go files below a folder, except hidden folders and testdata
func read(folder string, vocabulary int) (*corpus, error) {
	var training, heldBack []string
	bytes, files := 0, 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != folder && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if ending := filepath.Ext(name); ending != ".md" && ending != ".go" {
			return nil
		}
		content, err := os.ReadFile(path)
		if files++; files%10 == 0 {
			heldBack = append(heldBack, string(content))
		} else {
			training = append(training, string(content))
		}
		bytes += len(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if bytes < fewest || files < 20 {
		return nil, fmt.Errorf("the .md and .go files of %q and below have %d bytes in %d files, expected %d in 20 or more: run it from the root of lazo's repository, or name a folder with -text",
			folder, bytes, files, fewest)
	}
	c := &corpus{}
	if c.tokens, err = (text.BPETraining{Size: vocabulary, Special: []string{endOfText}}).Train(data.Items(training)); err != nil {
		return nil, err
	}
	c.end, _ = c.tokens.ID(endOfText)
	encoded := func(files []string) (all []int32, bytes int, err error) {
		for _, file := range files {
			ids, err := c.tokens.EncodeOrdinary(file) // this file contains the special token's text
			if err != nil {
				return nil, 0, err
			}
			all, bytes = append(append(all, ids...), c.end), bytes+len(file)
		}
		return all, bytes, nil
	}
	if c.training, _, err = encoded(training); err != nil {
		return nil, err
	}
	c.heldBack, bytes, err = encoded(heldBack)
	c.tokensPerByte = float64(len(c.heldBack)) / float64(bytes)
	return c, err
}

func (c *corpus) batches(window, size int, seed uint64) func(yield func(data.Batch, error) bool) {
	return func(yield func(data.Batch, error) bool) {
		random := rand.New(rand.NewPCG(seed, 1))
		for {
			at := make([]int, size)
			for i := range at {
				at[i] = random.IntN(len(c.training) - window)
			}
			if !yield(data.Batch{Fields: fields(c.training, at, window), Size: size}, nil) {
				return
			}
		}
	}
}

func (c *corpus) held(window, n int) (*data.Set, error) {
	if len(c.heldBack) <= window {
		return nil, fmt.Errorf("%d tokens are held back, expected more than a window of %d", len(c.heldBack), window)
	}
	at := make([]int, n)
	for i := range at {
		at[i] = i * (len(c.heldBack) - window - 1) / n
	}
	return data.New(fields(c.heldBack, at, window)...)
}

func fields(tokens []int32, at []int, window int) []data.Field {
	var x, y []int32
	for _, i := range at {
		x, y = append(x, tokens[i:i+window]...), append(y, tokens[i+1:i+window+1]...)
	}
	return []data.Field{data.X(x, len(at), window), data.Y(y, len(at), window)}
}

// A unigram model's bits per held-out byte, with add-one smoothing.
func (c *corpus) byFrequencies() float64 {
	counts := make([]float64, c.tokens.Size())
	for _, id := range c.training {
		counts[id]++
	}
	bits := 0.0
	for _, id := range c.heldBack {
		bits -= math.Log2((counts[id] + 1) / float64(len(c.training)+len(counts)))
	}
	return bits / float64(len(c.heldBack)) * c.tokensPerByte
}
