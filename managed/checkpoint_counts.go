package managed

import (
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

type oldCounts struct {
	values map[string]*tensors.Tensor
	own    bool
}

func countsOf(given map[string]*tensors.Tensor, origins map[string]origin) *oldCounts {
	c := &oldCounts{values: map[string]*tensors.Tensor{}}
	for name, t := range given {
		scope, slot := model.SplitPath(name)
		switch {
		case isCount(name):
			c.own = true
		case t.IsScalar() && slices.Contains([]string{"step", "updates", "batches", optimizer.GlobalStepVariableName}, slot):
			c.values[name] = t
		}
		if _, link := model.SplitPath(scope); slot == "batches" && strings.HasPrefix(link, "accumulate") && strings.Contains(name, inOptimizers) {
			delete(given, name)
			delete(origins, name)
		}
	}
	return c
}

const inOptimizers = "/" + optimizer.Scope + "/"

// isCount: a removed link leaves its count.
func isCount(name string) bool {
	_, slot := model.SplitPath(name)
	return slot == "count" && strings.Contains(name, inOptimizers)
}

// inherited is a count of an older version's common count, or nil.
func (s *State) inherited(r *restored, path string, shape shapes.Shape) (*tensors.Tensor, error) {
	counts := r.counts
	switch {
	case counts == nil && len(r.tensors) == 0:
		return nil, nil
	case counts == nil:
		counts = countsOf(maps.Clone(r.tensors), nil)
	}
	if path == model.RootScopePath+stepsByName {
		return r.stepsBy(counts)
	}
	place, slot := model.SplitPath(path)
	scope, _, ours := strings.Cut(path, inOptimizers)
	if !ours || slot != "count" && slot != "batches" || !shape.DType.IsInt() || !shape.IsScalar() {
		return nil, nil
	}
	var names []string
	parameter := ""
	for p := range s.model.store.IterVariables() {
		if p.Trainable && strings.HasSuffix(place, p.Path()) && len(p.Path()) > len(parameter) {
			parameter = p.Path()
		}
	}
	link := strings.TrimSuffix(place, parameter)
	_, name := model.SplitPath(link)
	switch {
	case parameter == "" && r.recorded && len(s.model.numbers[path]) > 0 && !slices.ContainsFunc(s.model.numbers[path], r.trained):
		return nil, nil // untrained group
	case parameter == "": // a schedule's, which may be new
		names = []string{scope + inOptimizers + "updates"}
	case slot == "count" && counts.own:
		return nil, nil
	case r.recorded && !r.trained(parameter):
		return nil, nil
	case slot == "batches":
		names = []string{link + "/batches"}
	case name == "average":
		names = []string{link + "/updates"}
	default:
		for _, moment := range slices.Sorted(maps.Keys(r.tensors)) {
			for _, p := range oldNames(parameter) {
				if adam, ok := strings.CutSuffix(moment, p+"_1st_moment"); ok && strings.HasPrefix(adam, "/"+optimizer.AdamDefaultScope) {
					names = append(names, scope+adam+"/step", scope+adam+"/"+optimizer.GlobalStepVariableName)
				}
			}
		}
		names = append(names, scope+inOptimizers+"updates", scope+"/"+optimizer.GlobalStepVariableName)
		if name == "parameters" { // each batch was an update
			slices.Reverse(names[len(names)-2:])
		}
	}
	for _, name := range names {
		if r.from != nil {
			name = r.from(name)
		}
		if t := counts.values[name]; t != nil {
			if r.late[t] != nil {
				var err error
				if t, err = r.late.CopyOf(t); err != nil {
					return nil, err
				}
			}
			return tensors.FromAnyValue(shapes.CastAsDType(t.Value(), shape.DType))
		}
	}
	return nil, nil
}

func (r *restored) stepsBy(counts *oldCounts) (*tensors.Tensor, error) {
	sum := int64(0)
	for name, t := range counts.values {
		scope, slot := model.SplitPath(name)
		_, last := model.SplitPath(scope)
		rule := scope == model.RootScopePath || strings.HasPrefix(last, optimizer.AdamDefaultScope) || last == "cosine_schedule"
		if slot != optimizer.GlobalStepVariableName || rule {
			continue
		}
		if r.late[t] != nil {
			var err error
			if t, err = r.late.CopyOf(t); err != nil {
				return nil, err
			}
		}
		n, _ := t.Value().(int64)
		sum += n
	}
	return tensors.FromScalar(sum), nil
}
