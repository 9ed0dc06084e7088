package store

import (
	"slices"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/graphs"
)

type readers struct {
	list atomic.Pointer[[]*func() error]
}

// OnRead calls earlier functions first.
func (a *Access) OnRead(f func() error) (remove func(), err error) {
	if err := a.BeforeRead(); err != nil {
		return nil, err
	}
	a.readers.change(func(list []*func() error) []*func() error { return append(list, &f) })
	return func() {
		a.readers.change(func(list []*func() error) []*func() error {
			return slices.DeleteFunc(list, func(other *func() error) bool { return other == &f })
		})
	}, nil
}

func (r *readers) change(to func([]*func() error) []*func() error) {
	for {
		old := r.list.Load()
		var list []*func() error
		if old != nil {
			list = slices.Clone(*old)
		}
		if list = to(list); r.list.CompareAndSwap(old, &list) {
			return
		}
	}
}

// BeforeRead is called without a gate. It refuses build functions: collected steps may need the step being built.
func (a *Access) BeforeRead() error {
	if err := a.NotWithin(); err != nil {
		return err
	}
	list := a.readers.list.Load()
	if list == nil {
		return nil
	}
	for _, f := range *list {
		if err := (*f)(); err != nil {
			return graphs.Inner(err)
		}
	}
	return nil
}
