package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/loop"
)

// counter is a state of plain Go: its weight depends on all batches in their order, and its rate can be changed.
type counter struct {
	Weight, Rate float64
}

func (c *counter) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{
		Tensors:  []checkpoint.Tensor{{Name: "weight", DType: safetensors.F64, Dims: []int{}, Data: safetensors.Bytes([]float64{c.Weight})}},
		Sections: map[string]any{"rate": checkpoint.Float(c.Rate)},
	}, nil
}

func (c *counter) Restore(_ context.Context, from *checkpoint.Checkpoint) error {
	t, ok := from.Tensor("weight")
	if !ok {
		return errors.New("no weight")
	}
	values, err := safetensors.Values[float64](dataOf(t))
	if err != nil {
		return err
	}
	var rate checkpoint.Float
	if err := from.Section("rate", &rate); err != nil {
		return err
	}
	c.Weight, c.Rate = values[0], float64(rate)
	return nil
}

// dataOf returns a tensor's data, even if it was left in the file.
func dataOf(t checkpoint.Tensor) []byte {
	if t.Write == nil {
		return t.Data
	}
	var b bytes.Buffer
	if err := t.Write(&b); err != nil {
		return nil
	}
	return b.Bytes()
}

func (c *counter) LearningRate() (float64, error)     { return c.Rate, nil }
func (c *counter) SetLearningRate(rate float64) error { c.Rate = rate; return nil }

func (c *counter) step(batch int64) loop.Logs {
	c.Weight = math.Sin(c.Weight*3 + float64(batch)*c.Rate)
	var logs loop.Logs
	logs.Set(loop.Losses, "loss", c.Weight)
	return logs
}

// numbered are batches from a step on.
func numbered(from int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for i := from; yield(i, nil); i++ {
		}
	}
}

// counting is a loop of steps in blocks with evaluations.
func counting() loop.Loop[*counter, int64] {
	return loop.New(
		loop.On[*counter, int64](loop.EachStep, blocks{}),
		loop.On(loop.Every(loop.Steps(7)), loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
			var logs loop.Logs
			logs.Set(loop.Metrics, "test", math.Cos(c.Weight*5))
			return c, logs, nil
		})),
	)
}

type blocks struct{}

func (blocks) BlockSize() int { return 10 }

func (b blocks) Step(ctx context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
	return c, c.step(batch), nil
}

func (b blocks) StepBlock(ctx context.Context, c *counter, batches []int64) (*counter, []loop.Logs, error) {
	var all []loop.Logs
	for _, batch := range batches {
		all = append(all, c.step(batch))
	}
	return c, all, nil
}

// watchers are those with a memory.
func watchers() []loop.Option {
	return []loop.Option{
		callbacks.ReduceOnPlateau("test", 0.9, callbacks.Evaluations(2), callbacks.Monitor{Mode: loop.Lowest}),
		callbacks.StopEarly("test", callbacks.Evaluations(40), callbacks.Monitor{Mode: loop.Lowest}),
	}
}

// rows are the history but for the clock.
func rows(t T, h *loop.History) string {
	t.Helper()
	var b strings.Builder
	for at, logs := range h.Rows() {
		var entries []string // by name: their order in a row is that in which a history met them, which dropped rows are part of
		for e := range logs.All() {
			x, err := e.Value.Float()
			require.NoError(t, err)
			entries = append(entries, fmt.Sprintf(" %s=%x", e.Path(), math.Float64bits(x)))
		}
		slices.Sort(entries)
		fmt.Fprintln(&b, at.Steps, at.Samples, strings.Join(entries, ""))
	}
	return b.String()
}

// run runs a loop on numbered batches, and returns where it began.
func run[S any](ctx context.Context, l loop.Loop[S, int64], state S, options ...loop.Option) (result loop.Result[S], from loop.Elapsed, err error) {
	where := loop.Prepare("where", func(_ context.Context, b loop.Beginning) (loop.Option, error) { from = b.From; return nil, nil })
	result, err = l.Run(ctx, state, loop.From(numbered), append(options, where)...)
	return result, from, err
}

// saves is the option that saves into a folder on a schedule.
func saves(f *checkpoint.Folder, when loop.Schedule, options ...checkpoint.Options) loop.Option {
	return f.Resume(append(options, checkpoint.Options{When: when})...)
}

// looked restores a folder's checkpoint into a state, and makes no step.
func looked[S checkpoint.State](f *checkpoint.Folder, state S, options ...checkpoint.Options) (loop.Result[S], error) {
	none := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s S, _ int64) (S, loop.Logs, error) { return s, loop.Logs{}, nil })))
	return none.Run(context.Background(), state, loop.From(numbered), saves(f, loop.Never, append(options, checkpoint.Options{IgnoreEnd: true})...), loop.Until(loop.Steps(0)))
}

// at is the option that resumes from a step.
func at(step checkpoint.Step) checkpoint.Options { return checkpoint.Options{At: &step} }

// resumed runs until the end from the folder's checkpoint.
func resumed(t T, f *checkpoint.Folder, until loop.Steps, options ...loop.Option) (loop.Result[*counter], loop.Elapsed) {
	t.Helper()
	all := append(watchers(), loop.Until(until), f.Resume(checkpoint.Every(loop.Steps(20))))
	result, from, err := run(context.Background(), counting(), &counter{Rate: 1}, append(all, options...)...)
	require.NoError(t, err)
	return result, from
}
