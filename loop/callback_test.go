package loop_test

import "github.com/lazo-ml/lazo/loop"

// attend is a callback that makes an attendant for each run.
func attend(name string, when loop.Schedule, start func() loop.Attendant) loop.Callback {
	return loop.Callback{Name: name, When: when, Start: func(loop.Beginning) (loop.Attendant, error) { return start(), nil }}
}

// byHand starts a callback as a loop written by hand does.
