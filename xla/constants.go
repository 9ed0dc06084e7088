package xla

import (
	"errors"
	"slices"
	"sync"

	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// constants are those of [hlo.Builder.Apart].
type constants struct {
	mu sync.Mutex
	on map[*pjrt.Device][]*pjrt.Buffer
}

// placeConstants frees the host's copy, except for portable programs.
func (e *executable) placeConstants() error {
	if _, n := e.module.Constants(); n == 0 || e.portable {
		return nil
	}
	for _, d := range e.pjrt.Devices() {
		if _, err := e.constantsOn(d); err != nil {
			return err
		}
	}
	e.module = withoutConstants(e.module)
	return nil
}

func withoutConstants(m *hlo.Module) *hlo.Module {
	first, n := m.Constants()
	if n == 0 {
		return m
	}
	less := *m
	less.Parameters = slices.Clone(less.Parameters)
	for i := range n {
		less.Parameters[first+i].Value = []byte{}
	}
	return &less
}

func (e *executable) constantsOn(d *pjrt.Device) ([]*pjrt.Buffer, error) {
	first, n := e.module.Constants()
	if n == 0 {
		return nil, nil
	}
	e.constants.mu.Lock()
	defer e.constants.mu.Unlock()
	if placed, ok := e.constants.on[d]; ok {
		return placed, nil
	}
	var placed []*pjrt.Buffer
	for _, p := range e.module.Parameters[first : first+n] {
		b, err := d.Put(pjrt.Array{Shape: fromGoMLX(p.Shape), Data: p.Value})
		if err != nil {
			return nil, errors.Join(err, closeAll(placed))
		}
		placed = append(placed, b)
	}
	if e.constants.on == nil {
		e.constants.on = map[*pjrt.Device][]*pjrt.Buffer{}
	}
	e.constants.on[d] = placed
	return placed, nil
}

func (e *executable) runsOn(on *pjrt.Device) []*pjrt.Device {
	if on != nil {
		return []*pjrt.Device{on}
	}
	return e.pjrt.Devices()
}

func (c *constants) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, placed := range c.on {
		errs = append(errs, closeAll(placed))
	}
	c.on = nil
	return errors.Join(errs...)
}

func closeAll(list []*pjrt.Buffer) error {
	var errs []error
	for _, b := range list {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

func (c *call) setConstants() error {
	first, n := c.executable.module.Constants()
	c.constants = n
	if n == 0 {
		return nil
	}
	for i, d := range c.executable.pjrt.Devices() {
		list, err := c.executable.constantsOn(d)
		if err != nil {
			return err
		}
		for j, b := range list {
			if err := c.call.Set(i, first+j, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func callersParameters(m *hlo.Module) []hlo.Parameter {
	first, n := m.Constants()
	if n == 0 {
		return m.Parameters
	}
	return slices.Delete(slices.Clone(m.Parameters), first, first+n)
}
