package flaxlike

import (
	"context"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// Load sets the network's variables to a file's of [Model.Save], or none after an error. The file must have exactly
// these variables, with the same shapes and dtypes. The model must be built ([Model.Init]). The optimizer's state
// does not change. Damaged values are a [safetensors.ErrChecksum].
func (m *Model) Load(ctx context.Context, path string) error {
	if err := m.load(ctx, path); err != nil {
		return fmt.Errorf("flaxlike: load %s: %w", path, graphs.Inner(err))
	}
	return nil
}

func (m *Model) load(ctx context.Context, path string) error {
	if _, err := m.built(); err != nil {
		return err
	}
	content, _, err := readTensors(path)
	if err != nil {
		return err
	}
	return m.take(ctx, content)
}

func (m *Model) take(ctx context.Context, content *checkpoint.Checkpoint) error {
	needed, err := m.needed(content)
	if err != nil {
		return err
	}
	return m.change(func() error {
		return unlike(m.state.Transfer(ctx, content, func(name string) string {
			if name = shortName(name); needed[name] {
				return name
			}
			return ""
		}), content)
	})
}

func (m *Model) needed(content *checkpoint.Checkpoint) (map[string]bool, error) {
	variables, err := m.built()
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for _, v := range variables {
		needed[shortName(v.name)] = true
	}
	for _, t := range content.Tensors {
		if !needed[t.Name] && len(content.Tensors) > len(needed) {
			return nil, fmt.Errorf("the file has %q, which the model does not have: is the file from another model?", t.Name)
		}
	}
	return needed, nil
}

func unlike(err error, content *checkpoint.Checkpoint) error {
	var unlike *managed.MismatchError
	if !errors.As(err, &unlike) {
		return err
	}
	v := unlike.Mismatches[0]
	if v.Saved == "" {
		var names []string
		for _, t := range content.Tensors {
			names = append(names, fmt.Sprintf("%q", t.Name))
		}
		return fmt.Errorf("the file has no %q, which the model needs: is the file from another model?\n  the file has: %s", shortName(v.Name), strings.Join(names, ", "))
	}
	return fmt.Errorf("%q is %s in the file, and %s in the model: is the file from another model?", shortName(v.Name), v.Saved, v.Model)
}

// LoadSome is [Model.CopyFrom] from a safetensors file, as of [Model.Save] or lazo ckpt export.
func (m *Model) LoadSome(ctx context.Context, path string, match optim.Match) (Copied, error) {
	values, _, err := readTensors(path)
	var c Copied
	if err == nil {
		c, err = m.copyOf(ctx, values, match)
	}
	if err != nil {
		return Copied{}, fmt.Errorf("flaxlike: load %s: %w", path, graphs.Inner(err))
	}
	return c, nil
}

// CopyFrom copies the network's variables that match selects, like optim.Under("/model/body"), from another model, by
// name, with equal shapes and dtypes. A nil match copies all that fit. Selecting or fitting nothing is an error; no
// error changes a value. Both models must be built ([Model.Init]).
func (m *Model) CopyFrom(ctx context.Context, from *Model, match optim.Match) (Copied, error) {
	if from == nil {
		return Copied{}, errors.New("flaxlike: copy: the model to copy from is nil")
	}
	values, err := from.content()
	var c Copied
	if err == nil {
		c, err = m.copyOf(ctx, values, match)
	}
	if err != nil {
		return Copied{}, fmt.Errorf("flaxlike: copy: %w", graphs.Inner(err))
	}
	return c, nil
}

// Copied lists variables by their full names.
type Copied struct {
	Taken []string
	// Left are the model's other variables, and why.
	Left   []struct{ Name, Why string }
	Unused []string
}

func (c Copied) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d variables taken, %d left, %d unused", len(c.Taken), len(c.Left), len(c.Unused))
	for _, l := range c.Left {
		fmt.Fprintf(&b, "\n  left %s: %s", l.Name, l.Why)
	}
	for _, name := range c.Unused {
		fmt.Fprintf(&b, "\n  unused %s", name)
	}
	return b.String()
}

func (m *Model) copyOf(ctx context.Context, values *checkpoint.Checkpoint, match optim.Match) (c Copied, err error) {
	variables, err := m.built()
	if err != nil {
		return c, err
	}
	there := map[string]string{}
	for _, t := range values.Tensors {
		there[t.Name] = fmt.Sprintf("%s%v", dtype.InFiles(t.DType.String()), t.Dims)
	}
	taken, selected := map[string]bool{}, false
	var unfit []string
	for _, v := range variables {
		has, ok := there[shortName(v.name)]
		own, why := fmt.Sprintf("%s%v", dtype.Type(v.shape.DType), v.shape.Dimensions), ""
		takes := match == nil || match.Takes(v.name, v.shape)
		selected = selected || takes
		switch {
		case !takes:
			why = "the match does not select it"
		case !ok:
			why = "the source has no such variable"
		case has != own:
			why = fmt.Sprintf("it is %s in the model, and %s in the source", own, has)
		default:
			c.Taken, taken[shortName(v.name)] = append(c.Taken, v.name), true
			continue
		}
		c.Left = append(c.Left, struct{ Name, Why string }{v.name, why})
		if takes {
			unfit = append(unfit, v.name+": "+why)
		}
	}
	for _, t := range values.Tensors {
		if !taken[t.Name] {
			c.Unused = append(c.Unused, "/"+modelScope+"/"+t.Name)
		}
	}
	switch {
	case !selected:
		var names []string
		for _, v := range variables {
			names = append(names, v.name)
		}
		return c, fmt.Errorf("%v matches no variable of the model; there are %s", match, strings.Join(names, ", "))
	case match != nil && len(unfit) > 0:
		return c, fmt.Errorf("some variables that %v matches do not fit:\n  %s\n  to copy only those that fit, use a nil match", match, strings.Join(unfit, "\n  "))
	case len(taken) == 0:
		return c, fmt.Errorf("nothing fits:\n  %s", strings.Join(unfit, "\n  "))
	}
	slices.Sort(c.Unused)
	return c, m.change(func() error {
		return m.state.Transfer(ctx, values, func(name string) string {
			if name = shortName(name); taken[name] {
				return name
			}
			return ""
		})
	})
}

func (m *Model) content() (*checkpoint.Checkpoint, error) {
	variables, err := m.built()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.name
	}
	now, err := m.state.Values(names...) // all of one moment, also during training
	if err != nil {
		return nil, err
	}
	var c checkpoint.Checkpoint
	for i, v := range variables {
		t, err := tensorOf(now[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		t.Name = shortName(v.name)
		c.Tensors = append(c.Tensors, t)
	}
	return &c, nil
}

func tensorOf(value *tensors.Tensor) (t checkpoint.Tensor, err error) {
	a, err := managed.ArrayOf(value)
	if err != nil {
		return t, err
	}
	of, _ := dtype.Of(a.Flat)
	if t.DType, err = safetensors.ParseDType(of.InFile()); err != nil {
		return t, err
	}
	t.Dims = a.Dims
	t.Data, err = encoding.Append(nil, encoding.LittleEndian, a.Flat)
	return t, err
}

func readTensors(path string) (*checkpoint.Checkpoint, map[string]string, error) {
	list, elements, metadata, err := safetensors.ReadFile(path, safetensors.Limits{})
	if err != nil {
		return nil, nil, err
	}
	var c checkpoint.Checkpoint
	for i, t := range list {
		c.Tensors = append(c.Tensors, checkpoint.Tensor{Name: shortName(t.Name), DType: t.DType, Dims: t.Dims, Data: elements[i]})
	}
	return &c, metadata, nil
}

func shortName(name string) string { return strings.TrimPrefix(name, "/"+modelScope+"/") }
