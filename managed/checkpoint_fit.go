package managed

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/managed/internal/store"
)

// MismatchError reports that a checkpoint does not fit the model.
type MismatchError struct {
	Step       checkpoint.Step
	Mismatches []Mismatch
	transfer   bool
	later      bool
}

// Mismatch is a variable that differs: dtype and dims of Saved and Model, "" if missing.
type Mismatch struct{ Name, Saved, Model string }

const shownMismatches = 20

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the model is not that of the checkpoint of step %d:", e.Step)
	for i, d := range e.Mismatches {
		if i == shownMismatches {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Mismatches)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s: ", d.Name)
		switch {
		case d.Saved == "":
			fmt.Fprintf(&b, "not in the checkpoint, the model has %s", d.Model)
		case d.Model == "":
			fmt.Fprintf(&b, "saved as %s, not in the model", d.Saved)
		default:
			fmt.Fprintf(&b, "saved as %s, the model has %s", d.Saved, d.Model)
		}
	}
	if e.transfer {
		b.WriteString("\nreturn \"\" for a variable that keeps, or draws, its own value")
	} else {
		b.WriteString("\nbuild the model that was saved, or take the tensors that fit: by State.Transfer, or into a flaxlike.Model by LoadSome from a file of lazo ckpt export")
		if e.later {
			b.WriteString("; if this step was not used before the checkpoint, prepare a step that was (Stepper.Prepare) before it")
		}
	}
	return b.String()
}

func (e *MismatchError) orNil() error {
	if len(e.Mismatches) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Mismatches, func(a, b Mismatch) int { return strings.Compare(a.Name, b.Name) })
	e.Mismatches = slices.Compact(e.Mismatches)
	return e
}

type origin struct {
	Trainable bool `json:"trainable,omitempty"`
	Group     int  `json:"group"`
	Train     bool `json:"train,omitempty"`
}

type saved struct {
	origins  map[string]origin
	steps    []usedStep
	partial  bool
	restored *restored
}

type restored struct {
	step    checkpoint.Step
	origins map[string]origin
	steps   []usedStep
	// recorded: it lists its steps.
	recorded bool
	from     func(variable string) string // nil: same names, all required
	tensors  map[string]*tensors.Tensor   // all if from is set, else the unused
	all      int
	taken    bool
	late     store.Late
	counts   *oldCounts
	lacks    map[*model.Variable][]string // names without a value, per pack
}

type missing struct {
	variable *model.Variable
	name     string
	shape    shapes.Shape
	packed   bool
}

func (r *restored) asked(variables []*model.Variable) error {
	var model []string
	for _, v := range variables {
		r.taken = r.taken || r.nameOf(v) != "" && v.Path() != store.RandomName
		if v.Trainable {
			model = append(model, v.Path())
		}
	}
	if r.from == nil || r.taken || len(model) == 0 {
		return nil
	}
	return fmt.Errorf("nothing to transfer: the function of names returns \"\" for each variable of the model, %q; the checkpoint has %q", model, slices.Sorted(maps.Keys(r.tensors)))
}

func (r *restored) nameOf(v *model.Variable) string {
	if r.from == nil {
		return v.Path()
	}
	return r.from(v.Path())
}

func (s *State) awaited() *restored {
	return cmp.Or(s.saved.restored, &restored{tensors: s.model.given.Initial, late: s.model.given.Late})
}

func (s *State) fit(fresh []*model.Variable, step asking) error {
	r, err := s.renewed(s.awaited(), fresh)
	if s.saved.restored != nil && err == nil {
		e := &MismatchError{Step: r.step, transfer: r.from != nil}
		r.check(e, &step, fresh, r.tensors, nil)
		err = e.orNil()
	}
	if err == nil {
		err = r.asked(fresh)
	}
	if err != nil {
		return err
	}
	switch {
	case s.saved.restored == nil:
		s.model.given.Initial = r.tensors
	case r.from == nil:
		s.saved.restored, s.model.given.Tensors = r, r.tensors
	default:
		s.saved.restored = r
	}
	for _, v := range fresh {
		if t := r.tensors[r.nameOf(v)]; r.from != nil && t != nil {
			s.model.given.Tensors[v.Path()] = t
		}
	}
	group := 0
	for _, origins := range []map[string]origin{s.saved.origins, r.origins} {
		for _, o := range origins {
			group = max(group, o.Group+1)
		}
	}
	for _, v := range fresh {
		for _, name := range s.model.namesOf(v) {
			o, ok := r.origins[name]
			if !ok {
				o = origin{Trainable: v.Trainable, Group: group, Train: step.Train}
			}
			s.saved.origins[name] = o
		}
	}
	return nil
}

func (r *restored) check(e *MismatchError, step *asking, variables []*model.Variable, waiting, others map[string]*tensors.Tensor) {
	found, touched, trained := map[string]bool{}, map[int]bool{}, false
	var lacks []missing
	for _, v := range variables {
		name := r.nameOf(v)
		t := waiting[name]
		switch {
		case t != nil && !t.Shape().Equal(v.Shape()):
			e.Mismatches = append(e.Mismatches, Mismatch{v.Path(), describe(t.DType(), t.Shape().Dimensions), describe(v.DType(), v.Shape().Dimensions)})
			fallthrough
		case t != nil:
			found[name] = true
			if o := r.origins[name]; v.Path() != store.RandomName {
				touched[o.Group], trained = true, trained || o.Train
			}
		case name != "" && len(r.lacks[v]) == 0:
			lacks = append(lacks, missing{variable: v, name: v.Path(), shape: v.Shape()})
		}
		for _, name := range r.lacks[v] {
			lacks = append(lacks, missing{v, name, shapes.Make(v.DType()), true})
		}
	}
	waits := func(name string) bool {
		return name != store.RandomName && !isCount(name) && waiting[name] != nil && !found[name] && others[name] == nil
	}
	left := r.left(step, waits)
	related := len(waiting) == r.all || len(touched) > 0 || len(left) > 0
	e.later = r.recorded && step.Train && len(e.Mismatches) == 0 && len(left) == 0
	for _, m := range lacks {
		if r.must(step, m, related, trained || len(left) > 0) {
			e.Mismatches = append(e.Mismatches, Mismatch{Name: m.name, Model: describe(m.shape.DType, m.shape.Dimensions)})
		}
	}
	if known := len(r.same(step.stepID)) > 0; r.from == nil && !known && (!r.recorded || len(e.Mismatches) > 0) {
		left = r.leftOf(touched, step, waits)
	}
	if r.from != nil {
		left = nil
	}
	for _, name := range left {
		t := waiting[name]
		e.Mismatches = append(e.Mismatches, Mismatch{Name: name, Saved: describe(t.DType(), t.Shape().Dimensions)})
	}
	e.later = e.later && len(left) == 0
}

func (r *restored) leftOf(groups map[int]bool, step *asking, waits func(name string) bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.origins)) {
		if o := r.origins[name]; waits(name) && groups[o.Group] && (o.Trainable || step.Train && o.Train) {
			names = append(names, name)
		}
	}
	return names
}

func (r *restored) trained(parameter string) bool {
	names := oldNames(parameter)
	return slices.ContainsFunc(r.steps, func(s usedStep) bool {
		return slices.ContainsFunc(s.Trains, func(p string) bool { return slices.Contains(names, p) })
	})
}

func describe(d dtypes.DType, dims []int) string {
	return fmt.Sprintf("%s%v", strings.ToLower(d.String()), dims)
}

func inFile(d dtypes.DType) (safetensors.DType, error) {
	t, err := safetensors.ParseDType(dtype.Type(d).InFile())
	if err != nil {
		return 0, fmt.Errorf("values of dtype %s cannot be kept in a checkpoint", d)
	}
	return t, nil
}

func outOfFile(d safetensors.DType) (dtypes.DType, error) {
	if t := dtype.InFiles(d.String()); t != 0 {
		return dtypes.DType(t), nil
	}
	return dtypes.InvalidDType, fmt.Errorf("values of dtype %s have no place in a model", d)
}

func oldNames(parameter string) []string {
	names := []string{parameter}
	for _, pair := range olderNames {
		if at, ok := strings.CutSuffix(parameter, "/"+pair[0]); ok {
			names = append(names, at+"/"+pair[1])
		}
	}
	return names
}
