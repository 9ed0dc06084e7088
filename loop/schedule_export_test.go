package loop

// What the loop asks a schedule, for the laws in the tests.

func (s Schedule) IsNever(until Period) bool { return s.never(until) }
func (s Schedule) StartsAt() bool            { return s.startsAt() }
func (s Schedule) EndsAt() bool              { return s.endsAt() }
