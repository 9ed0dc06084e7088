package pretrained

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Generator continues texts with a network of [Base.CausalLM]. The keys and values of earlier places are in the
// state: a token costs one place. Use it from one goroutine.
type Generator struct {
	network      *Network
	state        *managed.State
	rows, places int
	prompt       *managed.Stepper
	token, beams *managed.Stepper // one program
}

// Generator returns a generator for up to a number of rows, texts or beams, of up to a number of places, prompts
// included. A step computes all rows. The state has the network at the scope "model". Close the generator after use.
func (n *Network) Generator(state *managed.State, rows, places int) (*Generator, error) {
	err := n.err
	switch {
	case err != nil:
	case n.task != causalLM || n.family.decode == nil:
		err = fmt.Errorf("pretrained: a generator of the network %s, expected one of CausalLM", n.task)
	case rows < 1 || rows > mostRows || places < 1 || places > mostSize:
		err = fmt.Errorf("pretrained: a generator for %d rows of %d places, expected 1 to %d rows of 1 to %d places", rows, places, mostRows, mostSize)
	case n.family.places > 0 && places > n.family.places:
		err = fmt.Errorf("pretrained: a generator for %d places, expected at most %d, for which the network has positions", places, n.family.places)
	}
	if err != nil {
		return nil, err
	}
	g := &Generator{network: n, state: state, rows: rows, places: places}
	g.prompt = managed.TestStep(func(b *managed.Builder) { g.step(b, true, false) })
	g.token = managed.TestStep(func(b *managed.Builder) { g.step(b, false, false) })
	g.beams = managed.TestStep(func(b *managed.Builder) { g.step(b, false, true) })
	return g, nil
}

const mostRows = 1 << 12

// Rows bounds the rows.
func (g *Generator) Rows() int { return g.rows }

// Places counts a row's places.
func (g *Generator) Places() int { return g.places }

// Close frees the programs. The state keeps the variables of the places.
func (g *Generator) Close() error {
	return errors.Join(g.prompt.Close(), g.token.Close(), g.beams.Close())
}

const (
	lengthInput   = "length"   // of each prompt
	positionInput = "position" // of each token
	sourceInput   = "source"   // continued row
)

// step returns the logits after prompts, which may have padding, or after a token of each row. Later tokens replace
// the padding's keys and values before use.
func (g *Generator) step(b *managed.Builder, begins, moves bool) {
	f, s := g.network.family, b.Scope().In(networkScope)
	g.network.begin(s, b.Graph())
	own := b.Scope().At("generator_%d_%d", g.rows, g.places).WithInitializer(graph.Zeros)
	caches := f.caches(s, b.Graph(), g.rows, g.places)
	var sets []func()
	kept := func(name string, at **graph.Node) {
		v := own.VariableWithShape(name, (*at).Shape()).SetTrainable(false)
		if !begins {
			*at = v.NodeValue(b.Graph())
		}
		if moves {
			dims := (*at).Shape().Dimensions
			each := graph.Reshape(*at, g.rows, dims[0]/g.rows, dims[1], dims[2])
			*at = graph.Reshape(graph.Gather(each, graph.ExpandAxes(b.Field(sourceInput), -1)), dims...)
		}
		sets = append(sets, func() { v.SetNodeValue(*at) })
	}
	for i := range caches {
		kept(fmt.Sprintf("key_%d", i), &caches[i].Key)
		kept(fmt.Sprintf("value_%d", i), &caches[i].Value)
		if !begins {
			caches[i].Position = b.Field(positionInput)
		}
	}
	hidden := f.decode(s, b.Field(idsInput), caches)
	for _, set := range sets {
		set()
	}
	if begins {
		hidden = placeOf(hidden, graph.AddScalar(b.Field(lengthInput), -1))
	}
	for name, v := range g.network.outputs(s, hidden) {
		b.Output(name, graph.ConvertDType(v, dtypes.Float32))
	}
	g.network.end(s)
}

func placeOf(x, place *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	chosen := graph.Equal(graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, dims...), 1), graph.BroadcastToDims(graph.Reshape(place, -1, 1, 1), dims...))
	return graph.ReduceAndKeep(graph.Where(chosen, x, graph.ZerosLike(x)), graph.ReduceSum, 1)
}

// Piece is a token of a continuation.
type Piece struct {
	Prompt int
	ID     int32
	// Text has the characters that the token completes, if there is a Tokenizer. A text's pieces make up its
	// continuation, without special tokens and the token or text that ends it.
	Text string
	// End is "stop" for the last piece of a text that a token of Stop or a text of StopTexts ends, "length" for the
	// last one of other texts, and "" before.
	End string
}

const (
	endStop   = "stop"
	endLength = "length"
)

// Generate returns the tokens that follow prompts, one after another, each as alone: a token of each text in turns, or
// with Beams each text as a whole. A text ends with a token of Stop, which is also returned, at a text of StopTexts,
// after Most tokens, or at the last place. An error ends all. For prompts that the network cannot take it is a
// serve.ErrInput.
func (g *Generator) Generate(ctx context.Context, prompts [][]int32, of Generation) iter.Seq2[Piece, error] {
	of = of.cloned()
	texts := make([]*continued, len(prompts))
	for i, p := range prompts {
		texts[i] = &continued{number: i, ids: slices.Clone(p), prompt: len(p), of: &of}
	}
	return func(yield func(Piece, error) bool) {
		fail := func(err error) {
			if err != nil {
				yield(Piece{}, fmt.Errorf("pretrained: generate: %w", err))
			}
		}
		if err := g.check(texts, of); err != nil {
			fail(err)
			return
		}
		run := make([]*continued, len(texts))
		for i, c := range texts {
			if run[i] = c.again(g.places); of.Tokenizer != nil {
				var err error
				if run[i].text, err = newDecoding(of.Tokenizer, of.StopTexts, c.ids); err != nil {
					fail(err)
					return
				}
			}
		}
		if of.Beams.Count > 1 {
			fail(g.search(ctx, run, of, yield))
		} else {
			fail(g.draw(ctx, run, of, yield))
		}
	}
}

func (g *Generator) check(texts []*continued, of Generation) error {
	if err := of.check(); err != nil {
		return err
	}
	if rows := len(texts) * max(1, of.Beams.Count); len(texts) < 1 || rows > g.rows {
		return fmt.Errorf("%d prompts with %d beams, expected 1 prompt or more, and at most %d rows, the generator's", len(texts), max(1, of.Beams.Count), g.rows)
	}
	vocabulary := g.network.family.body[0].parts[0].dims[0]
	known := func(what string, ids []int32) error {
		for i, id := range ids {
			if id < 0 || int(id) >= vocabulary {
				return fmt.Errorf("token %d of %s is %d, expected 0 to %d", i, what, id, vocabulary-1)
			}
		}
		return nil
	}
	err := known("Stop", of.Stop)
	for _, c := range texts {
		if n := len(c.ids); n < 1 || n > g.places {
			return graphs.Input(fmt.Errorf("prompt %d has %d tokens, expected 1 to %d tokens, the generator's places", c.number, n, g.places))
		}
		err = collected(err, graphs.Input(known(fmt.Sprintf("prompt %d", c.number), c.ids)))
	}
	return err
}

type continued struct {
	number int
	ids    []int32
	prompt int // number of tokens
	of     *Generation
	most   int // tokens
	random *rand.Rand
	text   *decoding // nil without a Tokenizer
	end    string
}

// again returns the text without what followed the prompt: an iterator may run several times.
func (c *continued) again(places int) *continued {
	n := *c
	n.ids = slices.Clone(c.ids)
	n.most = places - c.prompt + 1 // the last token has no place
	if c.of.Most > 0 {
		n.most = min(n.most, c.of.Most)
	}
	n.random = rand.New(rand.NewPCG(c.of.Seed+uint64(c.number), 2))
	return &n
}

func (c *continued) add(id int32) (p Piece, err error) {
	c.ids = append(c.ids, id)
	p = Piece{Prompt: c.number, ID: id}
	switch {
	case slices.Contains(c.of.Stop, id):
		c.end = endStop
	case len(c.ids)-c.prompt == c.most:
		c.end = endLength
	}
	if c.text != nil {
		var stopped bool
		if p.Text, stopped, err = c.text.add(id, c.end); stopped {
			c.end = endStop
		}
	}
	p.End = c.end
	return p, err
}

// draw computes something unused for rows without a text or with an ended one.
func (g *Generator) draw(ctx context.Context, texts []*continued, of Generation, yield func(Piece, error) bool) error {
	logits, err := g.begin(ctx, texts, 1)
	for {
		if err != nil {
			return err
		}
		open := 0
		ids, positions := make([]int32, g.rows), make([]int32, g.rows)
		for i, c := range texts {
			if c.end != "" {
				continue
			}
			id, err := of.Sampling.Draw(c.random, row(logits, i), c.ids...)
			if err != nil {
				return fmt.Errorf("prompt %d: %w", i, err)
			}
			p, err := c.add(id)
			if err != nil {
				return fmt.Errorf("prompt %d: %w", i, err)
			}
			if !yield(p, nil) {
				return nil
			}
			if c.end == "" {
				open++
				ids[i], positions[i] = id, int32(len(c.ids)-1)
			}
		}
		if open == 0 {
			return nil
		}
		logits, err = g.logits(ctx, g.token, ids, data.Named(positionInput, positions, g.rows))
	}
}

func row(logits data.Array, i int) []float32 {
	width := logits.Dims[len(logits.Dims)-1]
	return logits.Flat.([]float32)[i*width:][:width]
}

// begin reads the prompts into the first of some rows. Padding to powers of two compiles few programs.
func (g *Generator) begin(ctx context.Context, texts []*continued, each int) (data.Array, error) {
	longest, padded := 1, 1
	for _, c := range texts {
		longest = max(longest, len(c.ids))
	}
	for padded < longest {
		padded *= 2
	}
	padded = min(padded, g.places)
	ids, lengths := make([]int32, g.rows*padded), make([]int32, g.rows)
	for i := range lengths {
		lengths[i] = 1
	}
	for i, c := range texts {
		copy(ids[i*each*padded:], c.ids)
		lengths[i*each] = int32(len(c.ids))
	}
	return g.logits(ctx, g.prompt, ids, data.Named(lengthInput, lengths, g.rows))
}

func (g *Generator) logits(ctx context.Context, step *managed.Stepper, ids []int32, more ...data.Field) (data.Array, error) {
	fields := append(more, data.Named(idsInput, ids, g.rows, len(ids)/g.rows))
	_, logs, err := step.Step(ctx, g.state, data.Batch{Size: g.rows, Fields: fields})
	if err != nil {
		return data.Array{}, err
	}
	return managed.Array(logs, "logits")
}

// decode is build for places after those of the caches, which it extends.
func (d decoder) decode(s *model.Scope, ids *graph.Node, caches []nn.Cache) *graph.Node {
	x := d.begin(s, ids, caches[0].Position, nil)
	for i := range d.layers {
		x = d.block(s.In("layer_%d", i), x, func(s *model.Scope, x *graph.Node) (y *graph.Node) {
			y, caches[i] = d.attention(i).Decode(s, x, caches[i])
			return y
		})
	}
	return d.norm(s.In("norm"), x)
}

func (d decoder) caches(s *model.Scope, g *graph.Graph, rows, places int) []nn.Cache {
	x := graph.Zeros(g, shapes.Make(d.dtype, rows, 1, d.width))
	all := make([]nn.Cache, d.layers)
	for i := range all {
		all[i] = d.attention(i).NewCache(s, x, places)
	}
	return all
}
