package managed

import (
	"slices"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
)

var _ loop.Queued = (*State)(nil)

// readers are the functions of [State.OnRead], in the order in which they came. Nil is none.
type readers struct {
	list atomic.Pointer[[]*func() error]
}

// OnRead has the state call a function before it is read or changed from outside, until remove: a loop gives one that
// makes the steps whose batches wait ([loop.Queued]). An error of the function is returned in place of a value. Before
// OnRead adds the function, it calls those that are there.
//
// What has no error to return calls none: the names, the shapes and the settings of a state.
func (s *State) OnRead(f func() error) (remove func(), err error) {
	if s == nil { // the first step says so
		return func() {}, nil
	}
	if err := s.access.beforeRead(); err != nil {
		return nil, err
	}
	s.access.readers.change(func(list []*func() error) []*func() error { return append(list, &f) })
	return func() {
		s.access.readers.change(func(list []*func() error) []*func() error {
			return slices.DeleteFunc(list, func(other *func() error) bool { return other == &f })
		})
	}, nil
}

// change replaces the list by a changed copy.
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

// beforeRead is called by whoever is to read or change the state and holds none of its gates. The function of a step
// that is being built is sent away: the steps that wait may need the step.
func (a *access) beforeRead() error {
	if err := a.notWithin(); err != nil {
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
