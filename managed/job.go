package managed

import "github.com/lazo-ml/lazo/loop"

// Job returns the processes that run the state's steps together, nil for one.
func (s *State) Job() loop.Job {
	if s == nil {
		return nil
	}
	if job := s.Strategy().Runtime().Job(); job != nil {
		return job
	}
	return nil // not a typed nil
}
