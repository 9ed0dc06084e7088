package managed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/internal/packs"
)

// renewed converts older forms (docs/decisions/0016).
func (s *State) renewed(r *restored, variables []*model.Variable) (*restored, error) {
	n := *r
	rescaled := false
	n.lacks = map[*model.Variable][]string{}
	for _, v := range variables {
		if names := packs.Names(s.model.store, v.Path()); names != nil && n.tensors[v.Path()] == nil {
			if err := s.packInto(&n, v, names); err != nil {
				return nil, fmt.Errorf("%s: %w", v.Path(), err)
			}
			continue
		}
		name := r.nameOf(v)
		old := n.older(name)
		t, path := n.tensors[old], v.Path()
		if root := r.atRoot(name); t == nil && root != "" {
			old, t = root, r.tensors[root]
		}
		if old != name {
			path = "/" + old
		}
		var err error
		switch {
		case t != nil && flattened(path, t.Shape(), v.Shape()):
			saved := t.Shape().Dimensions
			if r.late[t] != nil {
				t, err = r.late.CopyOf(t)
			}
			if err == nil {
				t, err = reshaped(t, v.Shape())
			}
			if err == nil && strings.Contains(path, "/MultiHeadAttention/query/dense/") {
				rescaled = true
				err = rescale(t, queryScale(path, saved[len(saved)-1]))
			}
		case t != nil && old != name:
		case t == nil && s.model.counts(v):
			scope, _ := model.SplitPath(cmp.Or(name, v.Path()))
			if old = model.JoinPath(scope, optimizer.GlobalStepVariableName); name == "" {
				old, name = r.from(old), v.Path()
			}
			if t = n.tensors[old]; t == nil || t.DType() != dtypes.Int64 || !t.IsScalar() {
				continue
			}
			t, err = tensors.FromAnyValue(shapes.CastAsDType(tensors.ToScalar[int64](t), v.DType()))
			n.ask(v, name)
		case t == nil:
			if t, err = s.inherited(r, v.Path(), v.Shape()); t == nil && err == nil {
				continue
			}
			if name == "" {
				name = v.Path()
				n.ask(v, name)
			}
			old = name
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Path(), err)
		}
		n.tensors, n.origins = maps.Clone(n.tensors), maps.Clone(n.origins)
		if o, ok := n.origins[old]; ok {
			n.origins[name] = o
		}
		if old != name && r.from == nil {
			delete(n.tensors, old)
			delete(n.origins, old)
		}
		n.tensors[name] = t
	}
	if rescaled {
		s.values.Strategy().Runtime().Logger().Warn("managed: attention saved before GoMLX v0.28 was scaled twice: its queries were divided by the root of a head's " +
			"width, so that the model computes the same as before; give the layer no WithQueryKeyScale for it")
	}
	return &n, nil
}

func (r *restored) ask(v *model.Variable, name string) {
	if from := r.from; from != nil {
		r.from = func(path string) string {
			if path == v.Path() {
				return name
			}
			return from(path)
		}
	}
}

// Optimizer variables contain the parameter's name.
var olderNames = [][2]string{
	{"query/kernel", "MultiHeadAttention/query/dense/weights"}, {"query/bias", "MultiHeadAttention/query/dense/biases"},
	{"key/kernel", "MultiHeadAttention/key/dense/weights"}, {"key/bias", "MultiHeadAttention/key/dense/biases"},
	{"value/kernel", "MultiHeadAttention/value/dense/weights"}, {"value/bias", "MultiHeadAttention/value/dense/biases"},
	{"output/kernel", "MultiHeadAttention/output/dense/weights"}, {"output/bias", "MultiHeadAttention/output/dense/biases"},
	{"recurrent_kernel", "recurrent"}, {"kernel", "weights"}, {"bias", "biases"},
	{"kernel", "dense/weights"}, {"bias", "dense/biases"}, {"kernel", "conv/weights"}, {"bias", "conv/biases"},
	{"gamma", "layer_normalization/gain"}, {"beta", "layer_normalization/offset"}, {"scale", "rms_norm/scale"},
}

func (r *restored) older(name string) string {
	if r.tensors[name] != nil {
		return name
	}
	for _, names := range olderNames {
		at := strings.LastIndex("/"+name, "/"+names[0])
		if at < 0 {
			continue
		}
		if older := name[:at] + names[1] + name[at+len(names[0]):]; r.tensors[older] != nil {
			return older
		}
	}
	return name
}

// atRoot is for a step's own Adam of an older version, with moments at the root and counts in the step's scope.
func (r *restored) atRoot(name string) string {
	at := strings.Index(name, "/"+optimizer.AdamDefaultScope)
	if at <= 0 || !strings.HasSuffix(name, moment) {
		return ""
	}
	counts := false
	for saved := range r.tensors {
		if strings.HasPrefix(saved, name[:at+1]+optimizer.AdamDefaultScope) {
			if counts = true; strings.HasSuffix(saved, moment) {
				return ""
			}
		}
	}
	root := name[at:]
	if !strings.HasPrefix(name, "/") {
		root = root[1:]
	}
	if root = r.older(root); !counts || r.tensors[root] == nil {
		return ""
	}
	return root
}

const moment = "_moment"

func (d *definition) counts(v *model.Variable) bool {
	scope, name := model.SplitPath(v.Path())
	return name == "step" && (d.ofOptimizer[v] || strings.HasSuffix(scope, "/cosine_schedule")) && v.DType().IsFloat() && v.Shape().IsScalar()
}

// queryScale replaces the second scaling by 1/√width. Gradients grow as weights shrink.
func queryScale(path string, width int) float64 {
	root := math.Sqrt(float64(width))
	switch {
	case strings.HasSuffix(path, "_1st_moment"):
		return root
	case strings.HasSuffix(path, "_2nd_moment"):
		return root * root
	}
	return 1 / root
}

func rescale(t *tensors.Tensor, by float64) error {
	var unknown error
	err := t.MutableFlatData(func(flat any) {
		switch numbers := flat.(type) {
		case []float32:
			for i := range numbers {
				numbers[i] = float32(float64(numbers[i]) * by)
			}
		case []float64:
			for i := range numbers {
				numbers[i] *= by
			}
		default:
			unknown = fmt.Errorf("attention's %s of before GoMLX v0.28 cannot be rescaled, expected float32 or float64: load it into a model of that type first", t.Shape())
		}
	})
	return errors.Join(err, unknown)
}

func flattened(path string, saved, now shapes.Shape) bool {
	rank := 0
	switch {
	case strings.Contains(path, "/dense/weights"):
		rank = 2
	case strings.Contains(path, "/dense/biases"):
		rank = 1
	}
	return rank > 0 && now.Rank() == rank && saved.Rank() > rank && saved.DType == now.DType && saved.Size() == now.Size() &&
		slices.Equal(saved.Dimensions[:rank-1], now.Dimensions[:rank-1])
}

func reshaped(t *tensors.Tensor, to shapes.Shape) (*tensors.Tensor, error) {
	n := tensors.FromShape(to)
	if to.Size() == 0 {
		return n, nil
	}
	var inner error
	err := t.ConstBytes(func(from []byte) {
		inner = n.MutableBytes(func(data []byte) { copy(data, from) })
	})
	return n, errors.Join(err, inner)
}
