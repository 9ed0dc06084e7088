package dist

import "slices"

// Reached reports, at rank 0, whether it knows that all ranks have come to a step.
func (j *Job) Reached(step int64) bool {
	j.hub.mu.Lock()
	defer j.hub.mu.Unlock()
	return !slices.ContainsFunc(j.hub.views, func(v view) bool { return v.beat.Step < step })
}
