package loop

// What the loop asks a schedule, for the laws in the tests.

func (s Schedule) Next(now Elapsed) (step int64, ok bool) { return s.next(now) }
func (s Schedule) IsNever(until Period) bool              { return s.never(until) }
func (s Schedule) StartsAt() bool                         { return s.startsAt() }
func (s Schedule) EndsAt() bool                           { return s.endsAt() }
