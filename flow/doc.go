// Package flow has control flow for the graph of a step: loops over the places of a sequence, loops with a condition,
// branches.
//
//	last, outputs := flow.Scan(carry, xs, func(carry, x []*graph.Node) (next, out []*graph.Node) {
//		h := cell(carry[0], x[0])
//		return []*graph.Node{h}, []*graph.Node{h}
//	})
//
// [Scan] is for what goes step by step along an axis: recurrences, decoding, inner training. Its body is traced once
// and written into the program once, however long the sequence is, so that a program over 512 places compiles as fast
// as one over 8. [Cond] and [Switch] run one branch and leave the others alone; [While] runs as long as a condition
// says. All but While have gradients, of any order, and all may stand in each other's bodies.
//
// # Bodies
//
// A body may use any node of the graph from outside it, draw random numbers and set variables, if the graph belongs to
// a step of package managed or another user of GoMLX's model.Store: such variables are carried along. What a body makes
// is not there outside of it; it must be returned.
//
// A body is a function of the graph: it is called once, to be traced, and never with values. Under the strategy Eager
// it is called once for each place instead, and the values of its nodes can be read by xla.Value. So it is on GoMLX's
// backend in Go, which has no Cond and no Switch. A body with layers by In takes their scope from managed.Builder.Scope
// when it is called: a scope that it takes in from outside it has used in its first call.
//
// # Errors
//
// These are functions of a graph, as GoMLX's are: they panic with an error, which the step that is being built gives as
// its own.
package flow
