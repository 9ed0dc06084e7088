package managed

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/optim"
)

var _ interface{ Settings() []checkpoint.Setting } = (*State)(nil)

type settings struct {
	seed  int64
	rules map[string]*optim.Optimizer
	deal  *data.Deal
	size  int
	// batches are "" if they vary.
	batches map[string]string
	undealt bool
}

// noteBatch runs once per block. goesOn: the state was restored. A set's first batch then shows a set made for this
// run, as by Gather, and its data are unknown.
func (c *settings) noteBatch(b data.Batch, goesOn bool) {
	if b.Deal == c.deal && c.batches != nil && (b.Deal != nil || b.Samples() == c.size) {
		return
	}
	now := dealt(b)
	c.deal, c.size = b.Deal, b.Samples()
	c.undealt = b.Deal == nil && (c.undealt || c.batches == nil)
	if c.batches == nil {
		if c.batches = maps.Clone(now); goesOn && b.Deal != nil && b.Epoch == 0 && b.At == 0 {
			now = nil
		}
	}
	for name, was := range c.batches {
		if now[name] != was {
			c.batches[name] = ""
		}
	}
}

var ofDeal = []string{"data", "data.content", "order"}

func dealt(b data.Batch) map[string]string {
	d := b.Deal
	if d == nil {
		return map[string]string{"batch": fmt.Sprint(b.Samples())}
	}
	batch, order := fmt.Sprint(d.Size), "as they stand"
	if d.Remainder {
		batch += ", and the rest"
	}
	if d.Shuffled {
		order = fmt.Sprintf("shuffled, seed %d", d.Seed)
	}
	return map[string]string{"batch": batch, "data": fmt.Sprintf("%d examples: %s", d.Examples, strings.Join(d.Fields, ", ")),
		"data.content": fmt.Sprintf("%s (checksum of a sample)", d.Content), "order": order}
}

// Settings returns the training's settings as text: "optimizer", "optimizer.<link>" ([optim.Optimizer.Describe]),
// "optimizer.rate", "policy" and "seed"; after a training step also "batch", "data", "data.content" and "order", if
// equal in all batches, the last three empty without a [data.Set]. Those of compiled steps with [WithStepOptimizer]
// have the step's name as prefix.
func (s *State) Settings() []checkpoint.Setting {
	defer s.values.PeekAll()()
	var all []checkpoint.Setting
	add := func(name, value string, saved bool) {
		all = append(all, checkpoint.Setting{Name: name, Value: value, Saved: saved})
	}
	rule := func(name string, o *optim.Optimizer) {
		said := o.Describe()
		for _, part := range slices.Sorted(maps.Keys(said)) {
			add(strings.TrimSuffix(name+"."+part, "."), said[part], part == "rate")
		}
	}
	if s.model.optimizer != nil {
		rule("optimizer", s.model.optimizer)
	}
	for _, scope := range slices.Sorted(maps.Keys(s.settings.rules)) {
		rule(scope+".optimizer", s.settings.rules[scope])
	}
	policy := "none"
	if s.model.policy != nil {
		policy = s.model.policy.String()
	}
	add("policy", policy, false)
	add("seed", fmt.Sprint(s.settings.seed), true)
	for _, name := range slices.Sorted(maps.Keys(s.settings.batches)) {
		if value := s.settings.batches[name]; value != "" {
			add(name, value, false)
		}
	}
	if s.settings.undealt {
		for _, name := range ofDeal {
			add(name, "", false)
		}
	}
	return all
}

var _ interface{ Versions() map[string]string } = (*State)(nil)

// Versions returns "plugin", its platform and versions, and "devices", their number.
func (s *State) Versions() map[string]string {
	strategy := s.Strategy()
	p := strategy.Runtime().Plugin()
	plugin := p.Kind
	if p.Version != "" {
		plugin += " " + p.Version
	}
	if p.API != "" {
		plugin += ", PJRT API " + p.API
	}
	return map[string]string{"plugin": plugin, "devices": strconv.Itoa(strategy.NumDevices())}
}
