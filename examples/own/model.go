package main

import (
	"context"
	"math"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

const pixels, classes = 64, 10

// model is the state: weights per pixel, and biases. Steps copy the value; a state that changes in place would need a
// method Snapshot for callbacks.KeepBest.
type model [(pixels + 1) * classes]float64

// Checkpoints need only Content and Restore.
func (m model) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Sections: map[string]any{"model": m}}, nil
}

func (m *model) Restore(_ context.Context, c *checkpoint.Checkpoint) error {
	return c.Section("model", m)
}

// step is gradient descent on a batch's mean cross-entropy; rate 0 only evaluates.
func step(rate float64) loop.Stepper[model, data.Batch] {
	return loop.StepFunc(func(_ context.Context, m model, b data.Batch) (model, loop.Logs, error) {
		x, y := b.Fields[0].Array.Flat.([]float32), b.Fields[1].Array.Flat.([]int32)
		next, loss, right := m, 0.0, 0.0
		for i, label := range y {
			image := x[i*pixels : (i+1)*pixels]
			p, best := m.probabilities(image)
			loss -= math.Log(p[label])
			if best == int(label) {
				right++
			}
			p[label]-- // leaves the logits' gradient
			for c, gradient := range p {
				change := rate * gradient / float64(b.Size)
				for k, v := range image {
					next[k*classes+c] -= change * float64(v)
				}
				next[pixels*classes+c] -= change
			}
		}
		var logs loop.Logs
		logs.Loss("loss", loss/float64(b.Size))
		logs.Metric("accuracy", right/float64(b.Size))
		return next, logs, nil
	})
}

func (m *model) probabilities(image []float32) (p [classes]float64, best int) {
	sum := 0.0
	for c := range p {
		logit := m[pixels*classes+c]
		for k, v := range image {
			logit += m[k*classes+c] * float64(v)
		}
		p[c] = math.Exp(logit)
		sum += p[c]
		if p[c] > p[best] {
			best = c
		}
	}
	for c := range p {
		p[c] /= sum
	}
	return p, best
}
