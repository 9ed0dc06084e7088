package callbacks

// Stopwatch is that of a run, for tests of it.
type Stopwatch = stopwatch

// At begins a part by its name.
func (s *stopwatch) At(name string) { s.turnTo(name, func() Part { return Part{Name: name} }) }

// Throughput is the measurement of LogThroughput.
type Throughput = throughput
