package managed

import "github.com/lazo-ml/lazo/loop"

var _ loop.Joined = (*State)(nil)

// joined is a strategy whose steps several processes make together.
type joined interface{ Job() loop.Job }

// Job is the processes that make the state's steps together, nil where this one is alone: a run of the state is then
// made by all of them, as [loop.Joined] says.
func (s *State) Job() loop.Job {
	if s == nil {
		return nil
	}
	if j, ok := s.Strategy().(joined); ok {
		return j.Job()
	}
	return nil
}
