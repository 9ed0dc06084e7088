// Command gpt trains a GPT-style language model on this project's documents and code, or on a folder's .md and .go
// files, and generates text:
//
//		go run ./examples/gpt
//		go run ./examples/gpt -text FOLDER -steps 2000 -prompt "The loop" -temperature 0.5
//
//	  - A byte-level BPE vocabulary (package text) is trained on the same text and saved as tokenizer.json.
//	  - The model is decoder-only: pre-norm, rotary positions, tied embeddings.
//	  - Training uses AdamW, warmup, cosine decay and clipping by the global norm.
//	  - Generation uses a key-value cache, temperature, top-k and top-p.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/xla"
)

type settings struct {
	folder, tokenizer        string
	model                    network
	steps, batch, evaluation int
	rate                     float64
	seed                     uint64
	prompt                   string
	tokens                   int
	sampling                 text.Sampling
}

func main() {
	must.M = loop.Exit
	var s settings
	flag.StringVar(&s.folder, "text", ".", "a `folder`: its .md and .go files, and those below it, are the text")
	flag.StringVar(&s.tokenizer, "tokenizer", "", "a `file` to write the vocabulary to, as a tokenizer.json")
	flag.IntVar(&s.model.vocabulary, "vocabulary", 1024, "tokens")
	flag.IntVar(&s.model.width, "width", 128, "of the vectors of a token")
	flag.IntVar(&s.model.heads, "heads", 4, "of attention")
	flag.IntVar(&s.model.blocks, "blocks", 4, "of attention and dense layers")
	flag.IntVar(&s.model.window, "window", 128, "tokens that are seen in training")
	flag.IntVar(&s.steps, "steps", 600, "training steps")
	flag.IntVar(&s.batch, "batch", 16, "windows of a step")
	flag.IntVar(&s.evaluation, "evaluation", 8, "batches that are evaluated")
	flag.Float64Var(&s.rate, "rate", 3e-3, "the highest learning rate")
	flag.Uint64Var(&s.seed, "seed", 0, "of the parameters, the order of the text and the tokens drawn")
	flag.StringVar(&s.prompt, "prompt", "A step is", "the text that the model continues")
	flag.IntVar(&s.tokens, "tokens", 100, "to write")
	flag.Float64Var(&s.sampling.Temperature, "temperature", 0.8, "0 takes the likeliest token")
	flag.IntVar(&s.sampling.TopK, "top-k", 50, "draw among this number of likeliest tokens; 0 among all")
	flag.Float64Var(&s.sampling.TopP, "top-p", 0.95, "draw among the likeliest tokens of that probability; 0 among all")
	flag.Parse()
	if flag.NArg() > 0 {
		must.M(fmt.Errorf("%q is not a flag", flag.Args()))
	}
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	defer runtime.Close()
	must.M(run(ctx, runtime, s, os.Stdout, os.Stderr))
}

func (s settings) check() error {
	for name, n := range map[string]int{"window": s.model.window, "heads": s.model.heads, "blocks": s.model.blocks, "batch": s.batch, "evaluation": s.evaluation, "tokens": s.tokens} {
		if n < 1 {
			return fmt.Errorf("-%s is %d, expected at least 1", name, n)
		}
	}
	if m := s.model; m.width < 1 || m.width%(2*m.heads) != 0 { // rotary positions have pairs
		return fmt.Errorf("-width is %d, expected a multiple of twice the %d -heads", m.width, m.heads)
	}
	_, err := s.sampling.Probabilities([]float32{0})
	return err
}

func run(ctx context.Context, runtime *xla.Runtime, s settings, stdout, stderr io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	c, err := read(s.folder, s.model.vocabulary)
	if err != nil {
		return err
	}
	prompt, err := c.tokens.Encode(s.prompt)
	if err != nil {
		return err
	}
	if err := s.model.fits(prompt, s.tokens); err != nil {
		return err
	}
	if s.tokenizer != "" {
		file, err := json.Marshal(c.tokens)
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.tokenizer, file, 0o644); err != nil {
			return err
		}
	}
	s.model.vocabulary = c.tokens.Size() // a short text has fewer pairs
	state, found, err := s.train(ctx, runtime, c, stderr)
	if err != nil {
		return err
	}
	defer state.Close()
	fmt.Fprintf(stdout, "bits per byte: %.3f (by frequencies of tokens alone: %.3f)\n", found, c.byFrequencies())

	w, begin := newWriter(s.model, state), time.Now()
	defer w.close()
	written, err := w.write(ctx, prompt, s.tokens, c.end, s.sampling, s.seed)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "wrote %d tokens in %.2f s\n", len(written), time.Since(begin).Seconds())
	out, err := c.tokens.Decode(written)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, s.prompt+out)
	return err
}

// train also returns the bits per held-out byte.
func (s settings) train(ctx context.Context, runtime *xla.Runtime, c *corpus, stderr io.Writer) (*managed.State, float64, error) {
	warm := max(s.steps/10, 1)
	optimizer := optim.New(s.rate,
		optim.Clip{GlobalNorm: 1},
		optim.Adam{Beta2: 0.99},
		optim.WeightDecay{Rate: 0.1, Match: optim.RankFrom(2)},
		optim.ScaleBySchedule(optim.Linear(0, 1, warm).Then(warm, optim.Cosine(1, 0.1, max(s.steps-warm, 1)))))
	state, err := managed.New(strategies.Jit(runtime), managed.WithOptimizer(optimizer), managed.WithSeed(int64(s.seed)))
	if err != nil {
		return nil, 0, err
	}
	step := func(b *managed.Builder) {
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), s.model.logits(b.Scope(), b.Field("x"))))
	}
	held, err := c.held(s.model.window, s.batch*s.evaluation)
	if err != nil {
		return nil, 0, err
	}
	test := loop.Evaluate("test", managed.TestStep(step), held.Batches(s.batch))
	training := train.Loop[*managed.State, data.Batch]{
		Step: managed.TrainStep(step), Reset: managed.Reset,
		Epoch: loop.Steps(max(s.steps/4, 1)),
		Tests: []loop.Evaluation[*managed.State, data.Batch]{test},
	}
	if _, err := training.Run(ctx, state, loop.Data[data.Batch](c.batches(s.model.window, s.batch, s.seed)), loop.Until(loop.Steps(s.steps)), callbacks.ProgressBar(stderr)); err != nil {
		return nil, 0, err
	}
	_, logs, err := test.Run(ctx, state)
	if err != nil {
		return nil, 0, err
	}
	loss, err := logs.Float("loss_test")
	return state, loss / math.Ln2 * c.tokensPerByte, err
}
