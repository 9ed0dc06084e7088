package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/abilities"
)

type Given struct {
	Tensors map[string]*Tensor // of a checkpoint
	Late    Late               // those of both maps that are not in memory
	// Initial are the program's, for variables that no checkpoint has; if not nil, with each trainable one that MayDraw
	// does not match.
	Initial map[string]*Tensor
	MayDraw func(variable string) bool
	spent   map[string]bool // initial values that variables took
}

func (g *Given) Of(name string) *Tensor { return cmp.Or(g.Tensors[name], g.Initial[name]) }

func (g *Given) All() map[string]*Tensor {
	all := map[string]*Tensor{}
	maps.Copy(all, g.Initial)
	maps.Copy(all, g.Tensors)
	return all
}

func (g *Given) Set(name string, t *Tensor) {
	if g.Tensors[name] != nil {
		g.Tensors[name] = t
	} else {
		g.Initial[name] = t
	}
}

func (g *Given) Forget(which func(name string) bool) {
	maps.DeleteFunc(g.Initial, func(name string, _ *Tensor) bool { return which(name) })
	maps.DeleteFunc(g.spent, func(name string, _ bool) bool { return which(name) })
}

// InitialLate is Late without tensors of a checkpoint.
func (g *Given) InitialLate() Late {
	late := Late{}
	for _, t := range g.Initial {
		if write := g.Late[t]; write != nil {
			late[t] = write
		}
	}
	return late
}

func (g *Given) Clone() Given {
	return Given{maps.Clone(g.Tensors), g.Late, maps.Clone(g.Initial), g.MayDraw, maps.Clone(g.spent)}
}

// give assigns all or none.
func (g *Given) give(fresh []*Variable) error {
	var wrong []string
	unused := g.All()
	for _, v := range fresh {
		name := v.Path()
		t := g.Of(name)
		delete(unused, name)
		switch {
		case t != nil && !t.Shape().Equal(v.Shape()):
			wrong = append(wrong, fmt.Sprintf("%s is %s, expected %s", name, t.Shape(), v.Shape()))
		case t != nil:
		case g.spent[name]: // a restore removed the variable that took it
			wrong = append(wrong, fmt.Sprintf("%s had a given value, which a step took before the restored checkpoint removed the variable: restore into a new state", name))
		case g.Initial != nil && v.Trainable && (g.MayDraw == nil || !g.MayDraw(name)):
			wrong = append(wrong, fmt.Sprintf("%s %s is missing", name, v.Shape()))
		}
	}
	if len(wrong) > 0 {
		left := ""
		if len(unused) > 0 {
			left = fmt.Sprintf("; given, but not in the model so far: %s", strings.Join(slices.Sorted(maps.Keys(unused)), ", "))
		}
		return fmt.Errorf("the given values do not fit the model: %s%s", strings.Join(wrong, "; "), left)
	}
	for _, v := range fresh {
		t := g.Of(v.Path())
		if t == nil {
			continue
		}
		clone, err := t, error(nil)
		if g.Late[t] == nil { // late ones are read when moved
			clone, err = t.LocalClone()
		}
		if err == nil {
			err = v.SetValuePreservingOld(clone)
		}
		if err != nil {
			return fmt.Errorf("the given value of %s: %w", v.Path(), err)
		}
	}
	return nil
}

// Late are tensors in files, with functions that write their bytes. They are read singly when moved.
type Late map[*Tensor]func(io.Writer) error

func (l Late) FromFile(t checkpoint.Tensor, dtype dtypes.DType) (*Tensor, error) {
	loaded := tensors.FromShape(shapes.Make(dtype, t.Dims...))
	switch {
	case loaded.Shape().Size() == 0:
		return loaded, nil
	case t.Write != nil:
		loaded.FinalizeLocal()
		l[loaded] = t.Write
		return loaded, nil
	}
	return loaded, fill(loaded, func(w io.Writer) error { _, err := w.Write(t.Data); return err })
}

// CopyOf's result a strategy may use up.
func (l Late) CopyOf(t *Tensor) (*Tensor, error) {
	write := l[t]
	if write == nil {
		return t.LocalClone()
	}
	loaded := tensors.FromShape(t.Shape())
	return loaded, fill(loaded, write)
}

func fill(t *Tensor, write func(io.Writer) error) error {
	var inner error
	err := t.MutableBytes(func(data []byte) {
		to := &memory{data: data}
		if inner = write(to); inner == nil && to.n != len(data) {
			inner = fmt.Errorf("%d bytes for %s, expected %d", to.n, t.Shape(), len(data))
		}
	})
	return errors.Join(err, inner)
}

type memory struct {
	data []byte
	n    int
}

var _ abilities.MemoryWriter = (*memory)(nil)

func (m *memory) Write(p []byte) (int, error) {
	if m.n < len(m.data) {
		copy(m.data[m.n:], p)
	}
	m.n += len(p)
	return len(p), nil
}

func (m *memory) AvailableBuffer() []byte { return m.data[min(m.n, len(m.data)):min(m.n, len(m.data))] }
