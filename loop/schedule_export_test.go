package loop

// Methods by which the loop asks a schedule, for the laws in the tests.

func (s Schedule) IsNever(until Period) bool { return s.isNever(until) }
func (s Schedule) StartsAt() bool            { return s.startsAt() }
func (s Schedule) EndsAt() bool              { return s.endsAt() }

// FirstSteps are those in which the first task of a plan is due.
func (p Plan) FirstSteps() (steps []int64, more bool) { return p.tasks[0].Steps, p.tasks[0].More }
