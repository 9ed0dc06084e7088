package xla

import (
	"errors"
	"slices"
	"sync"

	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

type constants struct {
	mu sync.Mutex
	on map[*pjrt.Device][]*pjrt.Buffer
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

func callersParameters(m *hlo.Module) []hlo.Parameter {
	first, n := m.Constants()
	if n == 0 {
		return m.Parameters
	}
	return slices.Delete(slices.Clone(m.Parameters), first, first+n)
}
