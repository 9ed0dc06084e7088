package board

import (
	"context"
	"errors"
	"image"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

var everyStep = loop.EachStep

func TestTraining_shows(t *testing.T) {
	b := serve(t)
	p := page{t, b}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(io.Discard, b), nil))
	log.Info("before the run")
	step := loop.StepFunc(func(_ context.Context, s *training, _ int) (*training, loop.Logs, error) {
		s.N++
		var logs loop.Logs
		logs.Loss("loss", 1/float64(s.N))
		if s.N == 2 {
			log.Info("in the run")
			_, _ = b.Write([]byte("half"))
			logs.Output("text", "a text")
			logs.Output("image", image.NewGray(image.Rect(0, 0, 2, 2)))
			logs.Output("other", []int{1})
		}
		return s, logs, nil
	})
	_, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), &training{rate: .5}, numbers(4), loop.Until(loop.Steps(4)), b.Training("digits", loop.EachStep))
	require.NoError(t, err)
	run := p.runs()[0]
	require.Equal(t, "digits", run.Name)
	require.Equal(t, "ended", run.Status)
	require.Equal(t, "until reached after 4 steps", run.Why)
	require.Equal(t, int64(4), run.Steps)
	require.Equal(t, 1.0, run.Progress)
	require.Equal(t, .5, *run.Rate)
	require.Equal(t, map[string]string{"optimizer": "adam"}, run.Settings)
	require.Equal(t, "losses.loss", run.Series[0].Name)
	require.Equal(t, "0.25", run.Series[0].Value)
	require.Equal(t, 2, run.Shown)
	lines := p.lines()
	require.Contains(t, lines, "in the run")
	require.NotContains(t, lines, "before the run")
	require.NotContains(t, lines, "half")
}

func TestTraining_ends(t *testing.T) {
	b := serve(t)
	p := page{t, b}
	broken := errors.New("the disk is gone")
	_, err := steps(nil).Run(t.Context(), &training{}, loop.Data[int](func(yield func(int, error) bool) {
		if yield(1, nil) {
			yield(0, broken)
		}
	}), b.Training("failing", loop.EachStep))
	require.ErrorIs(t, err, broken)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = steps(func(s *training) { cancel() }).Run(ctx, &training{}, numbers(9), b.Training("cancelled", loop.EachStep))
	require.ErrorIs(t, err, context.Canceled)
	all := p.runs()
	require.Equal(t, "failed", all[0].Status)
	require.Contains(t, all[0].Why, "the disk is gone")
	require.Equal(t, "interrupted", all[1].Status)
}

// unread is a number that waits for its device, until released.
type unread struct {
	ctx      context.Context
	released chan struct{}
}

func (u unread) Float() (float64, error) {
	select {
	case <-u.released:
	case <-u.ctx.Done():
	}
	return 1, u.ctx.Err()
}

// Neither pages that do not read nor values that are not ready delay a step: the run makes all of them before.
func TestTraining_delaysNoStep(t *testing.T) {
	b := serve(t)
	u, err := url.Parse(b.URL())
	require.NoError(t, err)
	for range 3 {
		c, err := net.Dial("tcp", u.Host)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte("GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	released := make(chan struct{})
	const all = 3 * queue
	made := 0
	step := loop.StepFunc(func(_ context.Context, s *training, _ int) (*training, loop.Logs, error) {
		made++
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", unread{ctx, released})
		if made == all {
			close(released) // no earlier value could be read
		}
		return s, logs, nil
	})
	_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), &training{}, numbers(all), b.Training("run", loop.EachStep))
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "a step has waited for a value")
	require.Equal(t, all, made)
	run := page{t, b}.runs()[0]
	require.Equal(t, "ended", run.Status)
	require.Contains(t, page{t, b}.lines(), "reports were not read")
}

// A value that cannot be read is a line of the log.
func TestTraining_unreadableValue(t *testing.T) {
	b := serve(t)
	step := loop.StepFunc(func(_ context.Context, s *training, _ int) (*training, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", failing{})
		return s, logs, nil
	})
	_, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), &training{}, numbers(1), b.Training("run", loop.EachStep))
	require.NoError(t, err)
	require.Contains(t, page{t, b}.lines(), "board: step 1: losses.loss: no device")
}

type failing struct{}

func (failing) Float() (float64, error) { return 0, errors.New("no device") }

func TestWaits(t *testing.T) {
	a := &attendant{}
	a.At(0, abilities.Activity{Kind: "task"})
	require.Zero(t, a.waits.total())
	a.At(0, abilities.Activity{Name: "data"})
	require.NotZero(t, a.waits.since.Load())
	a.At(1, abilities.Activity{Kind: "task"})
	require.Zero(t, a.waits.since.Load())
	total := a.waits.total()
	require.Equal(t, total, a.waits.total())
}

// One option may be that of several runs at once.
func TestTraining_severalRuns(t *testing.T) {
	b := serve(t)
	option := b.Training("run", loop.EachStep)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := steps(nil).Run(t.Context(), &training{}, numbers(50), option); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	all := page{t, b}.runs()
	require.Len(t, all, 4)
	for _, run := range all {
		require.Equal(t, "ended", run.Status)
		require.Equal(t, int64(50), run.Steps)
	}
}
