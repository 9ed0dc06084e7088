package managed

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/managed/internal/store"
)

// stepsSection lists the steps that a saved state was used with. Checkpoints of older versions lack it.
const stepsSection = "steps"

// stepID tells the steps of a program apart. It is the same in each process of the program.
type stepID struct {
	Train    bool   `json:"train,omitempty"`
	By       string `json:"by,omitempty"` // the scope of its rule
	Function string `json:"function"`     // the name of the Go function that builds it
}

// usedStep is a step that has brought its variables into a state. A checkpoint records these steps, because two cases
// look alike in the variables alone: a step that is used for the first time after the checkpoint, whose variables
// begin with their initial values as they would have without an interruption, and a step whose model was changed
// meanwhile.
type usedStep struct {
	stepID
	Uses   []string `json:"uses"`             // its variables, sorted
	Trains []string `json:"trains,omitempty"` // the parameters that it updates, sorted
}

// madeSteps has the stepID of each step that this process has made, with the place of its function in the source. It
// is global because a state meets its steps one after the other, and has to know whether those of the checkpoint will
// still come.
var madeSteps sync.Map

// id is the step's, with the place of its function: the compiler gives a function literal several names where it
// inlines the function around it.
func (s *stepSettings) id() (id stepID, place string) {
	pc := reflect.ValueOf(s.build).Pointer()
	function := runtime.FuncForPC(pc)
	file, line := function.FileLine(pc)
	return stepID{Train: s.train, By: s.scope, Function: function.Name()}, fmt.Sprint(file, ":", line)
}

// placeOf is the place of the function of a step that was made.
func placeOf(id stepID) string {
	place, _ := madeSteps.Load(id)
	text, _ := place.(string)
	return text
}

// asking is a step that asks for the values of its variables.
type asking struct {
	usedStep
	place           string                     // of its function; "" if it is not known
	gathers, ofRule func(*model.Variable) bool // which variables gather a metric, and which its rule keeps
	numbers         map[string][]string        // see definition
}

// asking is the step as it was built for a state.
func (s *Stepper) asking(state *State, b *Builder, used []*model.Variable) asking {
	id, place := s.id()
	if s.scope != "" { // what stands in for the count of all steps uses that too, if it is there: see apart
		used = slices.DeleteFunc(slices.Clone(used), func(v *model.Variable) bool { return v.Path() == globalStep })
	}
	return asking{usedStep{stepID: id, Uses: state.model.uses(used, b.trained), Trains: paths(b.trained)}, place,
		func(v *model.Variable) bool {
			return slices.ContainsFunc(b.resets, func(r reset) bool { return r.variable == v })
		},
		func(v *model.Variable) bool { return state.model.ofOptimizer[v] }, state.model.numbers}
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

// note records a step that has brought its variables in.
func (s *saved) note(step usedStep) {
	same := func(o usedStep) bool {
		return o.stepID == step.stepID && slices.Equal(o.Uses, step.Uses) && slices.Equal(o.Trains, step.Trains)
	}
	if !slices.ContainsFunc(s.steps, same) {
		s.steps = append(slices.Clip(s.steps), step)
	}
}

// must reports whether the checkpoint must have a variable which it lacks. related tells that the step shares variables
// with the checkpoint, or is the first after the restore, trained that it shares some of a training step.
func (r *restored) must(step *asking, m missing, related, trained bool) bool {
	v := m.variable
	switch {
	case r.from != nil:
		return true
	case m.packed && owner(m.name, step.Trains) == "": // the step passes it on
		return false
	case v.Trainable:
		return related && !r.comesLater(step)
	case !step.Train || !trained || step.gathers(v): // of a metric nothing was gathered before
		return false
	case step.ofRule(v):
		return r.hadRule(step, m.name)
	}
	return !r.recorded || len(r.same(step.stepID)) > 0
}

// comesLater reports whether a training step was used in no form before the checkpoint: another function builds it, or
// it has a rule of its own, and this process has made all training steps of the checkpoint beside it. So a step whose
// function was renamed does not come later.
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

// same are the steps of the checkpoint that may be the given one: several where one function builds several steps.
func (r *restored) same(id stepID) []usedStep {
	return slices.DeleteFunc(slices.Clone(r.steps), func(s usedStep) bool { return s.stepID != id })
}

// hadRule reports whether the step's rule had the variable of that name before the checkpoint: it keeps one for each
// parameter that it has trained, and those of several parameters from the first step on that trains one of them.
func (r *restored) hadRule(step *asking, name string) bool {
	parameter := owner(name, step.Trains)
	if !r.recorded { // another parameter has such a variable: then it was the same rule, and did not train this one
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

// owner is the parameter for which a rule keeps the variable of a name, "" if it is for none: rules put the
// parameter's full name into that of the variable.
func owner(name string, parameters []string) (parameter string) {
	for _, p := range parameters {
		if len(p) > len(parameter) && strings.Contains(name, p) {
			parameter = p
		}
	}
	return parameter
}

// ofOptimizers reports whether a name is one that rules give to what they keep.
func ofOptimizers(name string) bool {
	return strings.Contains(name, "/"+optimizer.Scope+"/") || strings.Contains(name, "/"+optimizer.AdamDefaultScope)
}

// left are the tensors that the step used before the checkpoint and does not ask for now. Of several steps that may be
// the given one, it is the one of which the fewest are left.
func (r *restored) left(step *asking, waits func(name string) bool) (names []string) {
	for i, s := range r.same(step.stepID) {
		var left []string
		for _, name := range s.Uses {
			o := r.origins[name]
			parameter := owner(name, s.Trains)
			untrained := !o.Trainable && parameter != "" && !slices.Contains(step.Trains, parameter)
			if !o.Trainable && parameter == "" && ofOptimizers(name) { // it may be a group's, of which this step trains none
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

// checkKnown compares the variables that the state has already with the checkpoint, as the steps did that brought them
// in.
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

// forget takes out those of the state's variables that the checkpoint lacks: the step that needs one brings it in
// anew, as it would have after the checkpoint.
func (s *State) forget(names map[string]bool, lost bool) error {
	if len(names) == 0 {
		return nil
	}
	s.saved.steps = slices.DeleteFunc(slices.Clone(s.saved.steps), func(step usedStep) bool {
		return slices.ContainsFunc(step.Uses, func(name string) bool { return names[name] })
	})
	for i, v := range s.values.Variables() {
		name := v.Path()
		if !names[name] {
			continue
		}
		if lost {
			s.values.Abandon(i)
		}
		if err := s.model.store.DeleteVariable(name); err != nil {
			return err
		}
		delete(s.model.ofOptimizer, v)
		for _, name := range s.model.namesOf(v) {
			delete(s.saved.origins, name)
		}
	}
	return s.values.Keep(func(v *model.Variable) bool { return !names[v.Path()] })
}
