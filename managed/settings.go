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

// settings is what a state knows of its settings beside optimizer and policy.
type settings struct {
	seed  int64
	rules map[string]*optim.Optimizer // those of WithStepOptimizer, by their scopes
	deal  *data.Deal                  // of the newest batch, nil where no set dealt it out
	size  int                         // of that batch
	// batches says of the batches, by the names of settings, what all of them have in common, and is "" for what varies:
	// that is no setting of the run.
	batches map[string]string
	undealt bool // no set dealt out any of the batches
}

// noteBatch is called for each block of steps. goesOn: the state was restored. It must then not be the first batch of a
// set, or it is of one that was made for it, as by Gather: what the data of the run are dealt out from is not known.
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

// ofDeal are the settings that a batch knows if a set dealt it out.
var ofDeal = []string{"data", "data.content", "order"}

// dealt are the settings that a batch knows.
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

// Settings says what the state trains with, in words: "optimizer" and "optimizer.<link>" (see
// [optim.Optimizer.Describe]),
// "optimizer.rate", "policy", "seed", and, when a training step was made, "batch", "data", "data.content" and "order",
// as far as its batches know them and all have the same; if no [data.Set] dealt out any batch, "data", "data.content"
// and "order" have no value: the state cannot know them. The rules of steps with [WithStepOptimizer] have the step's
// name in front, once they are compiled. A checkpoint of a run keeps them, and checkpoint.Resume tells which are
// others. A restored state goes on with the rate and the random numbers that were saved.
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

// Versions says what the state runs on: "plugin", its platform and versions, and "devices", their number. A checkpoint
// of a run keeps it, and checkpoint.Resume tells what is another.
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
