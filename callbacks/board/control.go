package board

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/board"
	"github.com/lazo-ml/lazo/loop"
)

type control struct {
	job     loop.Job
	saver   abilities.Saver
	rater   abilities.LearningRater
	actions []string
	first   *float64 // learning rate
	say     atomic.Pointer[board.Run]

	mu      sync.Mutex
	asked   atomic.Bool
	pending request
}

type request struct {
	stop, save, set bool
	pause           bool
	rate            float64
}

const (
	stop  = "stop"
	pause = "pause"
	save  = "save"
	rate  = "rate"
)

func (c *control) start(from loop.Beginning) {
	c.job, c.actions = from.Job, []string{stop, pause}
	for _, option := range from.Prepared {
		if saver, ok := option.(abilities.Saver); ok {
			c.saver = saver
		}
	}
	if c.saver != nil {
		c.actions = append(c.actions, save)
	}
	if c.rater, _ = abilities.StateAs[abilities.LearningRater](from); c.rater != nil {
		c.actions = append(c.actions, rate)
		c.first = c.rate()
	}
}

// rate is nil if unknown, as of some optimizers before the first step.
func (c *control) rate() *float64 {
	if c.rater == nil {
		return nil
	}
	v, err := c.rater.LearningRate()
	if err != nil {
		return nil
	}
	return &v
}

// ask is called on goroutines of the server.
func (c *control) ask(action string, value float64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch action {
	case stop:
		c.pending.stop = true
	case pause:
		c.pending.pause = true
	case save:
		c.pending.save = true
	case rate:
		if !(value >= 0) || math.IsInf(value, 0) {
			return fmt.Errorf("the learning rate is %g, expected a finite number from 0 on", value)
		}
		c.pending.set, c.pending.rate = true, value
	}
	c.asked.Store(true)
	return nil
}

// Interrupts is for a process alone: in a job, all processes meet when Watch is due.
func (c *control) Interrupts() bool { return c.job == nil && c.asked.Load() }

func (c *control) take() request {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.pending
	c.pending = request{}
	c.asked.Store(false)
	return r
}

func (c *control) Watch(_ context.Context, r loop.Report) error {
	what := c.take()
	if c.job != nil {
		if err := what.agree(c.job); err != nil {
			return err
		}
	}
	log := func(format string, values ...any) {
		if run := c.say.Load(); run != nil {
			run.Log(fmt.Sprintf("board: step %d: ", r.Elapsed.Steps) + fmt.Sprintf(format, values...))
		}
	}
	if what.save && c.saver != nil {
		c.saver.SaveNow()
		log("a save was asked for on the page")
	}
	if what.set {
		if err := c.set(r, what.rate); err != nil {
			log("the learning rate is not changed: %v", err)
		} else {
			log("the learning rate is set to %g", what.rate)
		}
	}
	switch {
	case what.stop:
		return fmt.Errorf("asked for on the board's page: %w", loop.ErrStop)
	case what.pause:
		return fmt.Errorf("asked for on the board's page: %w", loop.ErrPause)
	}
	return nil
}

func (c *control) set(r loop.Report, v float64) error {
	state, ok := abilities.StateAs[abilities.LearningRater](r)
	if !ok {
		return errors.New("the state has no learning rate")
	}
	if err := state.SetLearningRate(v); err != nil {
		return err
	}
	v, err := state.LearningRate()
	if run := c.say.Load(); run != nil && err == nil {
		run.Describe(func(i *board.Info) { i.Rate = &v })
	}
	return err
}

func (c *control) End(context.Context, loop.Ending) error { return nil }

func (r *request) agree(job loop.Job) error {
	word := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	words := []int64{word(r.stop), word(r.pause), word(r.save), word(r.set), int64(math.Float64bits(r.rate))} // ordered as the rates
	if err := job.Agree(words); err != nil {
		return err
	}
	*r = request{words[0] > 0, words[2] > 0, words[3] > 0, words[1] > 0, math.Float64frombits(uint64(words[4]))}
	return nil
}
