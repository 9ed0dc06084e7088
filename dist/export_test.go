package dist

import "slices"

// Listened returns the address at which rank 0 waited for the others.
func (j *Job) Listened() string { return j.hub.listener.Addr().String() }

// Reached reports, at rank 0, whether it knows that all ranks have come to a step.
func (j *Job) Reached(step int64) bool {
	j.hub.mu.Lock()
	defer j.hub.mu.Unlock()
	return !slices.ContainsFunc(j.hub.views, func(v view) bool { return v.beat.Step < step })
}
