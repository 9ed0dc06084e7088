package board

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// training is a state with a learning rate that is saved.
type training struct {
	N    int64
	rate float64
	job  loop.Job
}

func (s *training) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Sections: map[string]any{"n": s.N}}, nil
}

func (s *training) Restore(_ context.Context, c *checkpoint.Checkpoint) error {
	return c.Section("n", &s.N)
}

func (s *training) Settings() []checkpoint.Setting {
	return []checkpoint.Setting{{Name: "optimizer", Value: "adam"}}
}

func (s *training) LearningRate() (float64, error) { return s.rate, nil }

func (s *training) SetLearningRate(rate float64) error {
	if rate > 1 {
		return errors.New("the rate is above 1")
	}
	s.rate = rate
	return nil
}

func (s *training) Job() loop.Job { return s.job }

// steps counts, and calls do after each step.
func steps(do func(s *training)) loop.Loop[*training, int] {
	return loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s *training, _ int) (*training, loop.Logs, error) {
		s.N++
		var logs loop.Logs
		logs.Loss("loss", 1/float64(s.N))
		if do != nil {
			do(s)
		}
		return s, logs, nil
	})))
}

func numbers(n int) loop.Data[int] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func serve(t *testing.T) *Board {
	t.Helper()
	b, err := Serve("127.0.0.1:0", Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func TestControl_stopsAndPauses(t *testing.T) {
	for action, of := range map[string]struct {
		want   error
		status string
	}{stop: {loop.ErrStop, "ended"}, pause: {loop.ErrPause, "interrupted"}} {
		b := serve(t)
		p := page{t, b}
		result, err := steps(func(s *training) {
			if s.N == 3 {
				p.control(action, 0, 204)
			}
		}).Run(t.Context(), &training{}, numbers(10), b.Training("run", loop.Every(loop.Steps(100))))
		require.NoError(t, err)
		require.Equal(t, loop.Stopped, result.Reason)
		require.ErrorIs(t, result.Stop, of.want)
		require.Equal(t, int64(3), result.Elapsed.Steps)
		run := p.runs()[0]
		require.Equal(t, of.status, run.Status)
		require.Contains(t, run.Why, "asked for on the board's page")
		require.Empty(t, run.Actions)
		p.control(action, 0, 409)
	}
}

// The save comes after the step in progress, in a folder that another schedule saves at the end alone.
func TestControl_savesNow(t *testing.T) {
	b := serve(t)
	p := page{t, b}
	dir := t.TempDir()
	var saved []string
	list := func() (names []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "step-") {
				names = append(names, e.Name())
			}
		}
		return names
	}
	written := make(chan struct{}, 10)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := steps(func(s *training) {
		switch s.N {
		case 2:
			p.control(save, 0, 204)
		case 3:
			select {
			case <-written:
			case <-ctx.Done():
			}
			saved = list()
		}
	}).Run(t.Context(), &training{}, numbers(5), b.Training("run", loop.Every(loop.Steps(100))),
		checkpoint.Resume(dir, checkpoint.Every(loop.Steps(1000)), checkpoint.Options{Saved: func(checkpoint.Step, time.Duration, error) { written <- struct{}{} }}))
	require.NoError(t, err)
	require.Len(t, saved, 1)
	require.Contains(t, saved[0], "000002")
	require.Len(t, list(), 2, "and that of the end")

	// Without checkpoints there is nothing to save.
	_, err = steps(func(s *training) {
		if s.N == 1 {
			require.Equal(t, []string{stop, pause, rate}, p.runs()[1].Actions)
		}
	}).Run(t.Context(), &training{}, numbers(2), b.Training("run", loop.Every(loop.Steps(100))))
	require.NoError(t, err)
}

func TestControl_setsTheLearningRate(t *testing.T) {
	b := serve(t)
	p := page{t, b}
	var rates []float64
	_, err := steps(func(s *training) {
		rates = append(rates, s.rate)
		switch s.N {
		case 2:
			p.control(rate, .25, 204)
		case 3:
			require.Equal(t, .25, *p.runs()[0].Rate)
			p.control(rate, 5, 204)
			p.control(rate, -1, 409)
		}
	}).Run(t.Context(), &training{rate: .5}, numbers(4), b.Training("run", loop.Every(loop.Steps(100))))
	require.NoError(t, err)
	require.Equal(t, []float64{.5, .5, .25, .25}, rates)
	lines := p.lines()
	require.Contains(t, lines, "board: step 2: the learning rate is set to 0.25")
	require.Contains(t, lines, "board: step 3: the learning rate is not changed: the rate is above 1")
}

// pair is a job of two processes, which are goroutines here.
type pair struct {
	first  chan []int64
	answer chan []int64
}

func newPair() *pair { return &pair{make(chan []int64), make(chan []int64)} }

type member struct {
	*pair
	rank int
}

func (m member) Rank() int { return m.rank }
func (m member) Size() int { return 2 }

func (m member) Agree(words []int64) error {
	if m.rank == 0 {
		m.first <- words
		copy(words, <-m.answer)
		return nil
	}
	of := <-m.first
	if len(words) != len(of) {
		return fmt.Errorf("%d and %d words", len(words), len(of))
	}
	for i, w := range of {
		words[i] = max(words[i], w)
	}
	m.answer <- append([]int64(nil), words...)
	return nil
}

// All processes change the rate in the same iteration, and end alike.
func TestControl_overProcesses(t *testing.T) {
	b := serve(t)
	p := page{t, b}
	job := newPair()
	var group sync.WaitGroup
	rates := make([][]float64, 2)
	ends := make([]int64, 2)
	for rank := range 2 {
		of := b
		if rank == 1 {
			of = nil
		}
		group.Go(func() {
			result, err := steps(func(s *training) {
				rates[rank] = append(rates[rank], s.rate)
				if rank == 0 && s.N == 1 {
					p.control(rate, .25, 204)
				}
				if rank == 0 && s.N == 5 {
					p.control(stop, 0, 204)
				}
			}).Run(t.Context(), &training{rate: .5, job: member{job, rank}}, numbers(20), of.Training("run", loop.Every(loop.Steps(3))))
			if err != nil {
				t.Error(err)
			}
			ends[rank] = result.Elapsed.Steps
		})
	}
	group.Wait()
	require.Equal(t, []int64{6, 6}, ends)
	require.Equal(t, []float64{.5, .5, .5, .25, .25, .25}, rates[0])
	require.Equal(t, rates[0], rates[1])
	require.Equal(t, "ended", p.runs()[0].Status)
}

func TestRequest_agree(t *testing.T) {
	r := request{set: true, rate: math.SmallestNonzeroFloat64, pause: true}
	job := member{newPair(), 0}
	other := make(chan error)
	go func() {
		var none request
		other <- none.agree(member{job.pair, 1})
	}()
	require.NoError(t, r.agree(job))
	require.NoError(t, <-other)
	require.Equal(t, request{set: true, rate: math.SmallestNonzeroFloat64, pause: true}, r)
}
