package managed

import "github.com/lazo-ml/lazo/loop"

// Job is the processes that make the state's steps together, nil where this one is alone: a run of the state is then
// made by all of them, as [loop.Job] says.
func (s *State) Job() loop.Job {
	if s == nil {
		return nil
	}
	if job := s.Strategy().Runtime().Job(); job != nil {
		return job
	}
	return nil // and not a nil of dist's type
}
