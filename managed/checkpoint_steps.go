package managed

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/managed/internal/store"
)

// Old checkpoints lack it.
const stepsSection = "steps"

// stepID is equal in all processes.
type stepID struct {
	Train    bool   `json:"train,omitempty"`
	By       string `json:"by,omitempty"`
	Function string `json:"function"`
}

// usedStep distinguishes a step first used after the checkpoint, which gets initial values, from a changed model.
type usedStep struct {
	stepID
	Uses   []string `json:"uses"`
	Trains []string `json:"trains,omitempty"`
}

// madeSteps has each function's source position.
var madeSteps sync.Map

func placeOf(id stepID) string {
	place, _ := madeSteps.Load(id)
	text, _ := place.(string)
	return text
}

type asking struct {
	usedStep
	place           string
	gathers, ofRule func(*model.Variable) bool
	numbers         map[string][]string
}

func paths(variables []*model.Variable) []string {
	var names []string
	for _, v := range variables {
		if v.Path() != store.RandomName {
			names = append(names, v.Path())
		}
	}
	slices.Sort(names)
	return names
}

func (s *saved) note(step usedStep) {
	same := func(o usedStep) bool {
		return o.stepID == step.stepID && slices.Equal(o.Uses, step.Uses) && slices.Equal(o.Trains, step.Trains)
	}
	if !slices.ContainsFunc(s.steps, same) {
		s.steps = append(slices.Clip(s.steps), step)
	}
}

// must reports whether a missing variable is an error. related: the step shares the checkpoint's variables or is the
// first after it; trained: it shares a training step's.
func (r *restored) must(step *asking, m missing, related, trained bool) bool {
	v := m.variable
	switch {
	case r.from != nil:
		return true
	case m.packed && owner(m.name, step.Trains) == "":
		return false
	case v.Trainable:
		return related && !r.comesLater(step)
	case !step.Train || !trained || step.gathers(v): // metrics begin empty
		return false
	case step.ofRule(v):
		return r.hadRule(step, m.name)
	}
	return !r.recorded || len(r.same(step.stepID)) > 0
}

// comesLater reports whether a training step is first used after the checkpoint: its function or optimizer is new,
// and this process made all earlier ones. A renamed function is not new.
func (r *restored) comesLater(step *asking) bool {
	for _, s := range r.steps {
		place, made := madeSteps.Load(s.stepID)
		function := s.Function == step.Function || made && place == step.place
		if s.Train && !made || function && (!s.Train || s.By == step.By) {
			return false
		}
	}
	return r.recorded && step.Train
}

func (r *restored) same(id stepID) []usedStep {
	return slices.DeleteFunc(slices.Clone(r.steps), func(s usedStep) bool { return s.stepID != id })
}

// hadRule reports whether the step's optimizer had this variable: one per trained parameter, shared ones since their
// first.
func (r *restored) hadRule(step *asking, name string) bool {
	parameter := owner(name, step.Trains)
	if !r.recorded { // Another parameter's variable shows the same optimizer, which did not train this one.
		return parameter == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(r.origins)), func(other string) bool {
			_, there := r.origins[strings.Replace(name, parameter, other, 1)]
			return other != parameter && r.origins[other].Trainable && there
		})
	}
	return slices.ContainsFunc(r.steps, func(s usedStep) bool {
		trains := func(name string) bool { return slices.Contains(s.Trains, name) }
		switch several := step.numbers[name]; {
		case !s.Train || s.By != step.By || len(s.Trains) == 0:
			return false
		case parameter != "":
			return trains(parameter)
		default:
			return len(several) == 0 || slices.ContainsFunc(several, trains)
		}
	})
}

func owner(name string, parameters []string) (parameter string) {
	for _, p := range parameters {
		if len(p) > len(parameter) && strings.Contains(name, p) {
			parameter = p
		}
	}
	return parameter
}

func ofOptimizers(name string) bool {
	return strings.Contains(name, "/"+optimizer.Scope+"/") || strings.Contains(name, "/"+optimizer.AdamDefaultScope)
}

// left are tensors that the step used and does not use, the fewest among candidate steps.
func (r *restored) left(step *asking, waits func(name string) bool) (names []string) {
	for i, s := range r.same(step.stepID) {
		var left []string
		for _, name := range s.Uses {
			o := r.origins[name]
			parameter := owner(name, s.Trains)
			untrained := !o.Trainable && parameter != "" && !slices.Contains(step.Trains, parameter)
			if !o.Trainable && parameter == "" && ofOptimizers(name) { // of a group not trained here
				untrained = slices.ContainsFunc(s.Trains, func(p string) bool { return !slices.Contains(step.Trains, p) })
			}
			if waits(name) && !untrained && (o.Trainable || step.Train && o.Train) {
				left = append(left, name)
			}
		}
		if i == 0 || len(left) < len(names) {
			names = left
		}
	}
	return names
}

func (s *State) checkKnown(r *restored, known []*model.Variable, given map[string]*tensors.Tensor) error {
	gathers := func(v *model.Variable) bool { _, ok := s.model.resets[v]; return ok }
	ofRule := func(v *model.Variable) bool { return s.model.ofOptimizer[v] }
	all := asking{gathers: gathers, ofRule: ofRule, numbers: s.model.numbers}
	e := &MismatchError{Step: r.step, transfer: r.from != nil}
	rest, others := map[string]*model.Variable{}, map[string]*tensors.Tensor{}
	maps.Copy(others, s.pending())
	for _, v := range known {
		rest[v.Path()], others[v.Path()] = v, given[v.Path()]
		all.Train = all.Train || s.saved.origins[v.Path()].Train
	}
	for _, step := range s.saved.steps {
		all.Trains = append(all.Trains, step.Trains...)
		if !r.recorded {
			continue
		}
		var variables []*model.Variable
		for _, v := range known {
			if slices.ContainsFunc(s.model.namesOf(v), func(name string) bool { return slices.Contains(step.Uses, name) }) {
				variables = append(variables, v)
				delete(rest, v.Path())
			}
		}
		r.check(e, &asking{step, placeOf(step.stepID), gathers, ofRule, s.model.numbers}, variables, given, others)
	}
	if r.recorded {
		known, all.Train = slices.DeleteFunc(slices.Clone(known), func(v *model.Variable) bool { return rest[v.Path()] == nil }), false
	}
	r.check(e, &all, known, given, others)
	return e.orNil()
}

func (s *State) putBack(put []compute.Buffer, without map[*model.Variable]bool) error {
	lost := s.values.Last.Lost() != nil // unknown which buffers exist
	return errors.Join(s.values.Replace(put), s.forget(without, lost))
}

func (s *State) forget(variables map[*model.Variable]bool, lost bool) error {
	if len(variables) == 0 {
		return nil
	}
	names := map[string]bool{}
	for v := range variables {
		names[v.Path()] = true
		for _, scalar := range s.model.namesOf(v) {
			names[scalar] = true
		}
	}
	s.saved.steps = slices.DeleteFunc(slices.Clone(s.saved.steps), func(step usedStep) bool {
		return slices.ContainsFunc(step.Uses, func(name string) bool { return names[name] })
	})
	for i, v := range s.values.Variables() {
		if !variables[v] {
			continue
		}
		if lost {
			s.values.Abandon(i)
		}
		if err := s.model.store.DeleteVariable(v.Path()); err != nil {
			return err
		}
		delete(s.model.ofOptimizer, v)
	}
	for name := range names {
		delete(s.saved.origins, name)
	}
	return s.values.Keep(func(v *model.Variable) bool { return !variables[v] })
}
