// Package strategytest is the suite that each strategy passes. A test of a new strategy runs it:
//
//	func TestMine(t *testing.T) {
//		strategytest.Run(t, func(t *testing.T) strategies.Strategy { return mine.New(runtime(t)) })
//	}
package strategytest
