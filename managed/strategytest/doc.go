// Package strategytest is a test suite for strategies. A test of a new strategy runs it:
//
//	strategytest.Run(t, func(t *testing.T) strategies.Strategy { return mine.New(runtime(t)) })
package strategytest
