package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/data/text/chat"
	"github.com/lazo-ml/lazo/pretrained"
)

type generationFlags struct {
	Tokens      int      `default:"0" help:"Most tokens of an answer; 0: max_new_tokens of generation_config.json, else 256."`
	Temperature *float64 `help:"Divides the logits; 0 takes the likeliest token. Default: generation_config.json's, else 0."`
	TopK        *int     `help:"Draw among so many tokens; 0: all."`
	TopP        *float64 `help:"Draw among the likeliest tokens of this probability; 1: all."`
	Seed        uint64   `default:"0" help:"Of the draws: the same seed, the same text."`
	Stop        []string `sep:"none" help:"Text that ends an answer; may be given several times."`
	adapterFlag
}

func (f generationFlags) apply(of *pretrained.Generation) error {
	if f.Tokens < 0 {
		return fmt.Errorf("--tokens is %d, expected 0 or more", f.Tokens)
	}
	if of.Seed = f.Seed; f.Tokens > 0 {
		of.Most = f.Tokens
	} else if of.Most == 0 {
		of.Most = 256
	}
	drawn := f.Temperature != nil && *f.Temperature != 0 || f.Temperature == nil && of.Sampling.Temperature != 0
	if (f.TopK != nil || f.TopP != nil) && !drawn {
		return errors.New("--top-k and --top-p are of draws, and the temperature is 0, which takes the likeliest token: give --temperature above 0")
	}
	if f.Temperature != nil {
		of.Sampling.Temperature = *f.Temperature
	}
	if f.TopK != nil {
		of.Sampling.TopK = *f.TopK
	}
	if f.TopP != nil {
		of.Sampling.TopP = *f.TopP
	}
	of.StopTexts = append(of.StopTexts, f.Stop...)
	return nil
}

type modelGenerate struct {
	Path   string `arg:"" help:"Folder of the Hugging Face hub, or file .gguf, with a causal language model."`
	Prompt string `arg:"" help:"Text to continue; - for that on stdin."`
	generationFlags
}

func (c modelGenerate) Run(s session) (err error) {
	prompt := c.Prompt
	if prompt == "-" {
		all, err := io.ReadAll(s.stdin)
		if err != nil {
			return err
		}
		prompt = string(all)
	}
	l, err := c.open(s.ctx, c.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	ids, err := l.tokenizer.Encode(prompt)
	if err != nil {
		return err
	}
	g, err := l.network.Generator(l.state, max(1, l.generation.Beams.Count), l.places(len(ids)+l.generation.Most))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	_, err = speak(s, g, ids, l.generation)
	return err
}

func (f generationFlags) open(ctx context.Context, path string) (*language, error) {
	o, err := openPretrained(ctx, path, f.adapterFlag)
	if err != nil {
		return nil, err
	}
	l, err := openLanguage(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := f.apply(&l.generation); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func speak(s session, g *pretrained.Generator, ids []int32, of pretrained.Generation) (string, error) {
	var all strings.Builder
	tokens, end := 0, ""
	for piece, err := range g.Generate(s.ctx, [][]int32{ids}, of) {
		if err == nil {
			all.WriteString(piece.Text)
			_, err = fmt.Fprint(s.stdout, still(piece.Text))
		}
		if err != nil {
			return "", errors.Join(err, ended(s.stdout))
		}
		tokens++
		end = piece.End
	}
	err := ended(s.stdout)
	if end == "length" {
		fmt.Fprintf(s.stderr, "lazo: ended after %d tokens (--tokens is %d), %d with the prompt, of at most %d\n", tokens, of.Most, tokens+len(ids), g.Places())
	}
	return all.String(), err
}

func ended(w io.Writer) error {
	_, err := fmt.Fprintln(w)
	return err
}

// still removes only characters that control a terminal, none of those that join emoji.
func still(text string) string {
	return escapedBy(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
}

type modelChat struct {
	Path   string `arg:"" help:"Folder of the Hugging Face hub, or file .gguf, with a causal language model and a chat template."`
	System string `help:"First message, of the role system."`
	Places int    `default:"2048" help:"Most tokens of a conversation, as far as the model takes them."`
	generationFlags
}

func (c modelChat) Run(s session) (err error) {
	l, err := c.open(s.ctx, c.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	template, err := chat.New(l.tokenizer)
	if err != nil {
		return fmt.Errorf("%s: %w; lazo model generate continues a text without one", c.Path, err)
	}
	g, err := l.network.Generator(l.state, max(1, l.generation.Beams.Count), l.places(c.Places))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	var all []chat.Message
	if c.System != "" {
		all = append(all, chat.Message{Role: "system", Content: c.System})
	}
	for turn, err := range turns(s) {
		if err != nil {
			return err
		}
		all = append(all, chat.Message{Role: "user", Content: turn})
		prompt, err := template.Apply(all, true)
		if err != nil {
			return err
		}
		in, err := l.tokenizer.EncodeText(text.Input{Text: prompt, Bare: true})
		if err != nil {
			return err
		}
		if len(in.IDs) > g.Places() {
			return fmt.Errorf("the conversation has %d tokens, expected at most %d: begin another one, or give --places, up to the model's %d", len(in.IDs), g.Places(), l.is.Sizes["max_position_embeddings"])
		}
		answer, err := speak(s, g, in.IDs, l.generation)
		if err != nil {
			return err
		}
		all = append(all, chat.Message{Role: "assistant", Content: answer})
	}
	return nil
}

// A signal ends the wait for a line.
func turns(s session) func(yield func(string, error) bool) {
	type read struct {
		line string
		err  error
	}
	return func(yield func(string, error) bool) {
		lines, asked := make(chan read), make(chan struct{})
		defer close(asked)
		go func() {
			from := bufio.NewReader(s.stdin)
			for range asked {
				line, err := from.ReadString('\n')
				lines <- read{line, err}
			}
		}()
		typed := onTerminal(s.stdin)
		for {
			if typed {
				fmt.Fprint(s.stderr, "> ")
			}
			asked <- struct{}{}
			var r read
			select {
			case r = <-lines:
			case <-s.ctx.Done():
				yield("", context.Cause(s.ctx))
				return
			}
			if line := strings.TrimSpace(r.line); line != "" && !yield(line, nil) {
				return
			}
			if r.err != nil {
				if !errors.Is(r.err, io.EOF) {
					yield("", r.err)
				} else if typed {
					_ = ended(s.stderr)
				}
				return
			}
		}
	}
}
